import Glibc
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// Bytes that go through the daemon: partial content, and everything where the kernel offers no passthrough.

extension FileSystem {
    private func file(_ handle: HandleID) throws(Failure) -> (node: NodeID, file: SharedDescriptor) {
        guard let open = opens.handle(handle) else { throw Failure(.invalid, "the handle is not open for this") }
        if let file = open.file { return (open.node, file) }
        // Opened for the kernel's pages, and here is one that it does not have.
        guard !opens.mode(of: open.node).isPassthrough, let node = try known(open.node), node.content == .whole else {
            throw Failure(.invalid, "the handle is not open for this")
        }
        return (open.node, opens.keep(try contentFile(of: node), for: handle))
    }

    // MARK: Reading

    package func read(
        _ position: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<ReadReply>
    ) -> ParkedRequest? {
        let range = ByteRange(offset: position.offset, count: UInt64(count))
        do throws(Failure) {
            let (id, file) = try file(position.handle)
            guard let node = try known(id) else { throw Failure(.stale, "the file is gone") }
            if node.content == .whole {
                reply(.success(.descriptor(file.number, range: range)))
                return nil
            }
            let program = engine.hydrator.isHere(range, of: id) ? nil : try admit(caller, to: id)
            let parked = parking.enter(process: caller.process, node: id) { reply(.failure($0)) }
            let waiter = engine.hydrator.read(id, range, for: program) { [parking] result in
                guard parking.claim(parked) else { return }
                switch result {
                case .success: reply(.success(.descriptor(file.number, range: range)))
                case .failure(let failure): reply(.failure(failure))
                }
            }
            guard let waiter else { return nil }
            parking.onAbandon(parked) { [engine] in engine.hydrator.detach(waiter, from: id) }
            if let failure = engine.connectionFailure, parking.claim(parked) {
                engine.hydrator.detach(waiter, from: id)
                reply(.failure(failure))
                return nil
            }
            return parked
        } catch {
            reply(.failure(error))
            return nil
        }
    }

    // MARK: Writing

    package func write(
        _ position: FilePosition, _ bytes: UnsafeRawBufferPointer, clearsSetID: Bool, isPageWrite: Bool, caller: Caller,
        reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        do throws(Failure) {
            let (id, file) = try file(position.handle)
            guard let node = try known(id) else { throw Failure(.stale, "the file is gone") }
            // First, as on a local disk: a write that is told as failed has left no bytes.
            if clearsSetID, node.mode & 0o6000 != 0 { try self.clearSetID(of: id, for: caller) }
            let written =
                node.content == .whole
                ? try store(bytes, at: position, of: id, in: file)
                : try writePartial(bytes, at: position, of: id, in: file)
            // Of the kernel's pages nobody is told how much was written, only whether all was.
            if isPageWrite, let problem = written.problem { throw problem }
            reply(.success(written.count))
        } catch {
            reply(.failure(error))
        }
        return nil
    }

    /// Throws when nothing was written.
    private func store(
        _ bytes: UnsafeRawBufferPointer, at position: FilePosition, of id: NodeID, in file: SharedDescriptor
    ) throws(Failure) -> Written {
        guard position.appends else { return try Written(bytes, at: position.offset, in: file) }
        let (written, isMoved) = try Written.appending(bytes, at: position.offset, in: file)
        if isMoved { nodeChanged(id, content: true) }
        return written
    }

    /// Writes where content is still on its way; the rest is brought here in the background, as an upload needs it.
    private func writePartial(
        _ bytes: UnsafeRawBufferPointer, at position: FilePosition, of id: NodeID, in file: SharedDescriptor
    ) throws(Failure) -> Written {
        let offset = position.offset
        let wanted = ByteRange(offset: offset, count: UInt64(bytes.count))
        guard let claim = try engine.hydrator.claim(wanted, of: id) else {
            return try store(bytes, at: position, of: id, in: file)
        }
        let written: Written
        do throws(Failure) {
            written = try Written(bytes, at: offset, in: file)
        } catch {
            claim.withdraw()
            throw error
        }
        let range = ByteRange(offset: offset, count: UInt64(written.count))
        do throws(Failure) {
            try note(range, of: id, under: claim)
        } catch {
            takeBack(range, of: id, in: file, under: claim)
            throw error
        }
        claim.confirm(.written(range))
        engine.notePending()
        engine.hydrator.hydrateInBackground(id)
        return written
    }

    private func note(_ range: ByteRange, of id: NodeID, under claim: ContentClaim) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id), node.content != .absent else { return }
            node.size = max(node.size, range.upper)
            node.noteEdit(at: clock.now())
            if node.content == .partial {
                try transaction.setRanges(of: id, to: claim.ranges(after: .written(range), of: node))
            } else {
                // Whoever made it whole took the write's time from the content file.
                try stampContent(of: node)
            }
            try transaction.update(node)
            try markPending(namesOf: id, transaction)
        }
    }

    /// The content file has bytes that the index could not be told of. Those that were not here
    /// before are fetched again. The others are in the place of what was here, perhaps an edit, so
    /// they are one.
    private func takeBack(
        _ range: ByteRange, of id: NodeID, in file: SharedDescriptor, under claim: ContentClaim
    ) {
        let size = claim.size
        do throws(SystemError) {
            // The end of the file is claimed, so nobody else has moved it.
            if range.upper > size {
                try truncate(file.number, to: size, label: "content.write.back")
            }
        } catch {
            // What cannot be taken away is there.
            claim.confirm(.written(range))
            return noteSize(of: id)
        }
        let isEdit = claim.isPartlyHere(range)
        claim.withdraw()
        if isEdit { noteEdit(of: id) }
    }

    // MARK: Space and holes

    package func allocate(
        _ position: FilePosition, count: UInt64, mode: Int32, caller: Caller, reply: @escaping Reply<Void>
    ) -> ParkedRequest? {
        whenWhole(position.node, for: caller, reply: reply) { [self] () throws(Failure) in
            let file = try wholeFile(position.node)
            // The kernel asks for this with a write and a truncation, and leaves it to us here.
            // Root has CAP_FSETID.
            if caller.user != 0 { try clearSetID(of: position.node, for: caller) }
            do throws(SystemError) {
                try allocate(file, ByteRange(offset: position.offset, count: count), mode: mode)
            } catch {
                throw Failure(error)
            }
        }
    }

    /// A disk that gets full on the way may have moved the end of the file already (ext4). The
    /// kernel lets nobody else move it meanwhile.
    private func allocate(
        _ file: SharedDescriptor, _ range: ByteRange, mode: Int32
    ) throws(SystemError) {
        let before = try FileStatus.of(descriptor: file.number, label: "content.allocate.before")
        do throws(SystemError) {
            try PromiseSystem.allocate(file.number, mode: mode, range, label: "content.allocate")
        } catch {
            let now = try FileStatus.of(descriptor: file.number, label: "content.allocate.after")
            if now.size > before.size {
                try truncate(file.number, to: before.size, label: "content.allocate.back")
            }
            throw error
        }
    }

    /// Content that is not here has no holes: a copy that skips holes must not skip it.
    package func seek(_ position: FilePosition, to target: SeekTarget) throws(Failure) -> UInt64 {
        guard let node = try known(position.node) else { throw Failure(.stale, "the file is gone") }
        let size = attributes(of: node).size
        guard position.offset < size else { throw Failure(.outOfRange, "the offset is beyond the end") }
        guard node.content == .whole else { return target == .data ? position.offset : size }
        let file = try wholeFile(position.node)
        do throws(SystemError) {
            // SEEK_DATA is 3 and SEEK_HOLE is 4 (lseek(2)); glibc shows them only to GNU sources.
            return UInt64(try call("content.seek") { lseek(file.number, off_t(position.offset), target == .data ? 3 : 4) })
        } catch {
            throw Failure(error)
        }
    }

    package func copyRange(
        from source: FilePosition, to target: FilePosition, count: Int, caller: Caller, reply: @escaping Reply<Int>
    ) -> ParkedRequest? {
        do throws(Failure) {
            let nodes = [try known(source.node), try known(target.node)]
            guard nodes.allSatisfy({ $0?.content == .whole }) else {
                // The kernel then copies by reading and writing, which waits only for what is read.
                throw Failure(.notSupported, "the content is not local")
            }
            let (from, to) = (try wholeFile(source.node), try wholeFile(target.node))
            if caller.user != 0 { try clearSetID(of: target.node, for: caller) }
            let (copied, problem) = copySome(
                from: from.number, at: source.offset, to: to.number, at: target.offset,
                count: UInt64(count), label: "content.copy")
            if copied == 0, let problem { throw Failure(problem) }
            reply(.success(Int(copied)))
        } catch {
            reply(.failure(error))
        }
        return nil
    }

    private func wholeFile(_ id: NodeID) throws(Failure) -> SharedDescriptor {
        guard let node = try known(id) else { throw Failure(.stale, "the file is gone") }
        return try contentFile(of: node)
    }

    /// Runs `body` when the whole content is here.
    func whenWhole<Value: Sendable>(
        _ id: NodeID, for caller: Caller, reply: @escaping Reply<Value>, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) -> ParkedRequest? {
        let answer: @Sendable (Result<Void, Failure>) -> Void = { result in
            do throws(Failure) {
                try result.get()
                reply(.success(try body()))
            } catch {
                reply(.failure(error))
            }
        }
        let program: String
        do throws(Failure) {
            guard let node = try known(id) else { throw Failure(.stale, "the file is gone") }
            if node.content == .whole {
                answer(.success(()))
                return nil
            }
            program = try admit(caller, to: id)
        } catch {
            reply(.failure(error))
            return nil
        }
        let parked = parking.enter { reply(.failure($0)) }
        let waiter = engine.hydrator.hydrate(id, for: program) { [parking] result in
            if parking.claim(parked) { answer(result) }
        }
        guard let waiter else { return nil }
        parking.onAbandon(parked) { [engine] in engine.hydrator.detach(waiter, from: id) }
        return parked
    }
}

/// What a write has come to: fewer bytes than were given when something has stopped it on the way
/// (write(2)).
private struct Written {
    var count: Int
    var problem: Failure?

    private init(_ count: Int, _ problem: SystemError?) throws(Failure) {
        if count == 0, let problem { throw Failure(problem) }
        self.count = count
        self.problem = problem.map { Failure($0) }
    }

    /// Throws when nothing was written.
    init(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, in file: SharedDescriptor
    ) throws(Failure) {
        let (count, problem) = writeSome(file.number, bytes, at: offset, label: "content.write")
        try self.init(count, problem)
    }

    /// The same at the end. True: that was not at `offset`, as the kernel thought.
    static func appending(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, in file: SharedDescriptor
    ) throws(Failure) -> (Written, Bool) {
        let (count, problem, isMoved) = appendSome(
            file.number, bytes, at: offset, label: "content.append")
        return (try Written(count, problem), isMoved)
    }
}
