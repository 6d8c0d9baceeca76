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
            let writing = Writing(
                tree: self, id: id, position: position, file: file, isResent: caller.isResent)
            let written = try writing.carryOut(bytes, isWhole: node.content == .whole)
            // Of the kernel's pages nobody is told how much was written, only whether all was.
            if isPageWrite, let problem = written.problem { throw problem }
            reply(.success(written.count))
        } catch {
            reply(.failure(error))
        }
        return nil
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

    /// Runs `body` when the whole content is here; fails at once when it cannot come now.
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
            if let failure = engine.connectionFailure { throw failure }
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
