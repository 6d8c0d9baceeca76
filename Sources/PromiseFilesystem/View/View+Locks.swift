import Glibc
package import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

/// Which of a view's programs may have locks, and by which open files they have got them.
struct ViewLocks {
    private var handles: [LockOwner: Set<HandleID>] = [:]

    mutating func note(_ owner: LockOwner, by handle: HandleID) {
        handles[owner, default: []].insert(handle)
    }

    func has(_ owner: LockOwner) -> Bool { handles[owner] != nil }

    mutating func forget(_ owner: LockOwner) { handles[owner] = nil }

    /// Whose locks end with an open file. Those of processes have ended before, when each of them
    /// closed its descriptor (`flush`); what is left belongs to the open file.
    mutating func released(_ handle: HandleID) -> [LockOwner] {
        let owners = handles.filter { $0.value.contains(handle) }.map(\.key)
        for owner in owners { handles[owner] = nil }
        return owners
    }
}

extension View: LockOperations {
    /// Marks the numbers of calls that wait for a lock among those of parked requests.
    static let lockBit: UInt64 = 1 << 63

    /// Without it the view's kernel keeps its own, for programs of that view.
    package var hasLocks: Bool { keeper != nil }
    private var keeper: (any LockKeeper)? { tree.connection.withLock { $0?.locks } }

    private func owner(
        _ node: NodeID, _ kind: FileLock.Kind, _ number: UInt64
    ) -> LockOwner {
        LockOwner(view: launch.number, node: node, kind: kind, number: number)
    }

    package func testLock(
        _ lock: FileLock, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let file = try openFile(handle)
            guard let keeper else { throw View.noLocks }
            let owner = self.owner(file.node, lock.kind, owner)
            let call = LockCall.test(lock, at: try place(of: file))
            let number = keeper.ask(call, for: owner) { reply(.success($0)) }
            return ParkedRequest(View.lockBit | number)
        }
    }

    package func setLock(
        _ lock: FileLock, waits: Bool, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply
    ) -> ParkedRequest? {
        guarded(reply) { () throws(Failure) in
            let file = try openFile(handle)
            let owner = self.owner(file.node, lock.kind, owner)
            if lock.mode == .none, !state.withLock({ $0.locks.has(owner) }) {
                reply(.success(LockAnswer(problem: 0)))
                return nil
            }
            guard let keeper else { throw View.noLocks }
            if lock.mode == .none, lock.isOfAll {
                state.withLock { $0.locks.forget(owner) }
                return drop(owner, keeper, reply)
            }
            // Before it is asked for: its program may be killed while it waits.
            state.withLock { $0.locks.note(owner, by: handle) }
            let call = LockCall.set(lock, waits: waits, at: try place(of: file))
            let number = keeper.ask(call, for: owner) { [weak self] answer in
                if answer.problem == 0, lock.mode != .none {
                    self?.state.withLock { $0.locks.note(owner, by: handle) }
                }
                reply(.success(answer))
            }
            return ParkedRequest(View.lockBit | number)
        }
    }

    package func flush(
        _ node: NodeID, handle: HandleID, owner: UInt64, reply: @escaping LockReply
    ) -> ParkedRequest? {
        let file = state.withLock { $0.files[handle] }
        let key = file.map { self.owner($0.node, .ranges, owner) }
        let has = key.map { key in
            state.withLock { state in
                defer { state.locks.forget(key) }
                return state.locks.has(key)
            }
        }
        guard has == true, let key, let keeper else {
            reply(.success(LockAnswer(problem: 0)))
            return nil
        }
        return drop(key, keeper, reply)
    }

    private func drop(
        _ owner: LockOwner, _ keeper: any LockKeeper, _ reply: @escaping LockReply
    ) -> ParkedRequest? {
        _ = keeper.ask(.drop, for: owner) { _ in reply(.success(LockAnswer(problem: 0))) }
        return nil
    }

    /// The open file is gone.
    func releaseLocks(of handle: HandleID) {
        for owner in state.withLock({ $0.locks.released(handle) }) {
            _ = keeper?.ask(.drop, for: owner) { _ in }
        }
    }

    func endLocks() { keeper?.end(view: launch.number) }

    func cancelLock(_ request: ParkedRequest) {
        keeper?.cancel(request.rawValue & ~View.lockBit)
    }

    private func openFile(_ handle: HandleID) throws(Failure) -> ViewState.OpenFile {
        guard let file = state.withLock({ $0.files[handle] }) else {
            throw Failure(.invalid, "the handle is not open for this")
        }
        if policy.endsOpenFiles { try demand(.read, of: file.node, "lock") }
        return file
    }

    private func place(of file: ViewState.OpenFile) throws(Failure) -> LockPlace {
        let node = file.node
        let path = try index.read { transaction throws(Failure) in
            let entry = try transaction.entries(of: node).first
            guard let entry, let folder = try transaction.path(of: entry.parent) else {
                return nil as [FileName]?
            }
            return folder + [entry.name]
        }
        return LockPlace(path: path, isWritable: file.isWritable)
    }

    private static let noLocks = Failure(.notSupported, "promisefs-locks is missing")
}

extension MountConnection {
    /// The process that takes locks for views opens files for that and nothing else.
    func isOfLocks(_ caller: Caller) -> Bool {
        guard let process = locks?.process else { return false }
        return process != 0 && caller.process == process
    }
}

extension OpenRequest {
    /// Whatever the kernel has to be told: nothing will be written.
    var forLocks: OpenRequest { OpenRequest(flags: flags & ~3) }
}
