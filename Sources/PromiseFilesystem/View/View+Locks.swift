import Glibc
import PromiseCore
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

extension View: LockingOperations {
    package var locks: any LockOperations { locking }
    var locking: ViewLocking { ViewLocking(view: self) }
}

/// The locks of a view's programs, which `LockKeeper` takes on the main mount.
struct ViewLocking: LockOperations {
    let view: View

    private var tree: FileSystem { view.tree }

    /// Marks the numbers of calls that wait for a lock among those of parked requests.
    static let bit: UInt64 = 1 << 63

    var isServed: Bool { keeper != nil }
    private var keeper: (any LockKeeper)? { tree.connection.withLock { $0?.locks } }

    private func owner(
        _ node: NodeID, _ kind: FileLock.Kind, _ number: UInt64
    ) -> LockOwner {
        LockOwner(view: view.launch.number, node: node, kind: kind, number: number)
    }

    func testLock(
        _ lock: FileLock, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply
    ) -> ParkedRequest? {
        view.guarded(reply) { () throws(Failure) in
            let file = try openFile(handle)
            guard let keeper else { throw ViewLocking.noLocks }
            let owner = self.owner(file.node, lock.kind, owner)
            let call = LockCall.test(lock, at: try place(of: file))
            let number = keeper.ask(call, for: owner) { reply(.success($0)) }
            return ParkedRequest(ViewLocking.bit | number)
        }
    }

    func setLock(
        _ lock: FileLock, waits: Bool, of node: NodeID, handle: HandleID, owner: UInt64,
        reply: @escaping LockReply
    ) -> ParkedRequest? {
        view.guarded(reply) { () throws(Failure) in
            let file = try openFile(handle)
            let owner = self.owner(file.node, lock.kind, owner)
            if lock.mode == .none, !view.state.withLock({ $0.locks.has(owner) }) {
                reply(.success(LockAnswer(problem: 0)))
                return nil
            }
            guard let keeper else { throw ViewLocking.noLocks }
            if lock.mode == .none, lock.isOfAll {
                view.state.withLock { $0.locks.forget(owner) }
                return drop(owner, keeper, reply)
            }
            // Before it is asked for: its program may be killed while it waits.
            view.state.withLock { $0.locks.note(owner, by: handle) }
            let call = LockCall.set(lock, waits: waits, at: try place(of: file))
            let number = keeper.ask(call, for: owner) { [weak view] answer in
                if answer.problem == 0, lock.mode != .none {
                    view?.state.withLock { $0.locks.note(owner, by: handle) }
                }
                reply(.success(answer))
            }
            return ParkedRequest(ViewLocking.bit | number)
        }
    }

    func flush(
        _ node: NodeID, handle: HandleID, owner: UInt64, reply: @escaping LockReply
    ) -> ParkedRequest? {
        let file = view.state.withLock { $0.files[handle] }
        let key = file.map { self.owner($0.node, .ranges, owner) }
        let has = key.map { key in
            view.state.withLock { state in
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
    func release(_ handle: HandleID) {
        for owner in view.state.withLock({ $0.locks.released(handle) }) {
            _ = keeper?.ask(.drop, for: owner) { _ in }
        }
    }

    func end() { keeper?.end(view: view.launch.number) }

    /// False: it waits for something else.
    func cancel(_ request: ParkedRequest) -> Bool {
        guard request.rawValue & ViewLocking.bit != 0 else { return false }
        keeper?.cancel(request.rawValue & ~ViewLocking.bit)
        return true
    }

    private func openFile(_ handle: HandleID) throws(Failure) -> ViewState.OpenFile {
        guard let file = view.state.withLock({ $0.files[handle] }) else {
            throw Failure(.invalid, "the handle is not open for this")
        }
        if view.policy.endsOpenFiles { try view.demand(.read, of: file.node, "lock") }
        return file
    }

    private func place(of file: ViewState.OpenFile) throws(Failure) -> LockPlace {
        let node = file.node
        let path = try view.index.read { transaction throws(Failure) in
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
    /// Whatever the kernel has to be told: nothing will be written, nor cut off (O_TRUNC).
    var forLocks: OpenRequest { OpenRequest(flags: flags & ~0o1003) }
}
