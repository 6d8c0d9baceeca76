package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

// Open files. The kernel keeps no pages of a view, so that all views and the main mount see the
// same bytes at any time: every read and write comes here, and goes to the content file.

extension View {
    package func open(
        _ node: NodeID, _ request: OpenRequest, caller: Caller, reply: @escaping Reply<OpenReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            guard case .tree(let node) = ViewNode(node) else {
                throw Failure(.isFolder, "it is a folder")
            }
            let isWritable = request.isWritable || request.truncates
            try demand(isWritable ? .readWrite : .read, of: node, "open")
            return tree.open(node, request, caller: through(caller)) { [self] result in
                if case .success = result, request.truncates {
                    tell(of: .modified(node, content: true))
                } else if isWritable { tree.nodeChanged(node, content: false) }
                reply(result.map { opened($0, node, isWritable: isWritable) })
            }
        }
    }

    func opened(_ opened: OpenReply, _ node: NodeID, isWritable: Bool) -> OpenReply {
        state.withLock {
            $0.files[opened.handle] = ViewState.OpenFile(node: node, isWritable: isWritable)
        }
        return OpenReply(handle: opened.handle, isDirect: true)
    }

    package func release(_ node: NodeID, handle: HandleID) {
        locking.release(handle)
        guard let file = state.withLock({ $0.files.removeValue(forKey: handle) }) else { return }
        tree.release(file.node, handle: handle)
        if file.isWritable { tell(of: .modified(file.node, content: true)) }
    }

    /// The file that this view has opened: a right that is gone may end it.
    private func file(
        _ position: FilePosition, _ rights: ViewRights, _ operation: StaticString
    ) throws(Failure) -> FilePosition {
        guard let file = state.withLock({ $0.files[position.handle] }),
            rights == .read || file.isWritable
        else { throw Failure(.invalid, "the handle is not open for this") }
        if policy.endsOpenFiles { try demand(rights, of: file.node, operation) }
        return position.of(file.node)
    }

    package func read(
        _ position: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<ReadReply>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            tree.read(
                try file(position, .read, "read"), count: count, caller: through(caller),
                reply: reply)
        }
    }

    package func write(
        _ position: FilePosition, _ bytes: UnsafeRawBufferPointer, clearsSetID: Bool,
        isPageWrite: Bool, caller: Caller, reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let position = try file(position, .readWrite, "write")
            if position.appends, let node = try tree.known(position.node), node.content != .whole {
                return Appending(view: self).append(
                    Array(bytes), to: position, clearsSetID, through(caller), reply)
            }
            return tree.write(
                position, bytes, clearsSetID: clearsSetID, isPageWrite: isPageWrite,
                caller: through(caller)
            ) { [self] result in
                if case .success(let count) = result {
                    let range = ByteRange(offset: position.offset, count: UInt64(count))
                    tree.notifier?.invalidateContent(
                        of: position.node, range: position.appends ? nil : range)
                }
                reply(result)
            }
        }
    }

    package func synchronize(
        _ node: NodeID, handle: HandleID, dataOnly: Bool, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let position = FilePosition(node: node, handle: handle, offset: 0)
            let file = try file(position, .read, "synchronize")
            return tree.synchronize(file.node, handle: handle, dataOnly: dataOnly, reply: reply)
        }
    }

    package func allocate(
        _ position: FilePosition, count: UInt64, mode: Int32, caller: Caller,
        reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let position = try file(position, .readWrite, "allocate")
            return tree.allocate(position, count: count, mode: mode, caller: through(caller)) {
                [self] result in
                tree.nodeChanged(position.node, content: true)
                reply(result)
            }
        }
    }

    package func seek(_ position: FilePosition, to target: SeekTarget) throws(Failure) -> UInt64 {
        try tree.seek(try file(position, .read, "seek"), to: target)
    }

    package func copyRange(
        from source: FilePosition, to target: FilePosition, count: Int, caller: Caller,
        reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let from = try file(source, .read, "copyRange")
            let to = try file(target, .readWrite, "copyRange")
            return tree.copyRange(from: from, to: to, count: count, caller: through(caller)) {
                [self] result in
                tree.nodeChanged(to.node, content: true)
                reply(result)
            }
        }
    }
}

/// Writes at the end of a file of which not everything is here yet.
private struct Appending {
    let view: View

    /// Where the end is to be is known when everything is here: others may append meanwhile.
    func append(
        _ bytes: [UInt8], to position: FilePosition, _ clearsSetID: Bool, _ caller: Caller,
        _ reply: @escaping View.Reply<Int>
    ) -> ParkedRequest? {
        let tree = view.tree
        return tree.whenWhole(position.node, for: caller, reply: reply) { () throws(Failure) in
            let outcome = Mutex<Result<Int, Failure>?>(nil)
            bytes.withUnsafeBytes { bytes in
                _ = tree.write(
                    position, bytes, clearsSetID: clearsSetID, isPageWrite: false, caller: caller
                ) { result in outcome.withLock { $0 = result } }
            }
            tree.notifier?.invalidateContent(of: position.node, range: nil)
            guard let result = outcome.withLock({ $0 }) else {
                throw Failure(.inputOutput, "a write was not answered at once")
            }
            return try result.get()
        }
    }
}
