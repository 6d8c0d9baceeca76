import CFuse
import Glibc
import PromiseCore
import PromiseFilesystem

// C callbacks of locks, for a view: the main mount's kernel keeps its own. A file system that has
// locks is one that conforms to `LockingOperations`.

/// What the kernel asks where it keeps no locks.
func addLocks(to table: inout fuse_lowlevel_ops) {
    table.getlk = serveTestLock
    table.setlk = serveSetLock
    table.flock = serveLockFile
    table.flush = serveFlush
}

extension FileLock {
    fileprivate init(_ lock: flock) {
        let mode: Mode =
            switch CInt(lock.l_type) {
            case F_RDLCK: .shared
            case F_WRLCK: .exclusive
            default: .none
            }
        self.init(
            kind: .ranges, mode: mode, start: Int64(lock.l_start),
            // libfuse has made a length of the kernel's end, 0 for all the rest.
            end: lock.l_len == 0 ? .max : Int64(lock.l_start + (lock.l_len - 1)),
            process: lock.l_pid)
    }
}

extension flock {
    fileprivate init(_ lock: FileLock?) {
        self.init()
        let mode = lock?.mode ?? .none
        l_type = Int16(mode == .none ? F_UNLCK : mode == .shared ? F_RDLCK : F_WRLCK)
        guard let lock else { return }
        l_whence = Int16(SEEK_SET)
        l_start = off_t(lock.start)
        l_len = lock.end == .max ? 0 : off_t(lock.end - lock.start + 1)
        l_pid = lock.process
    }
}

extension Reply {
    fileprivate var locks: (any LockOperations)? { (filesystem as? any LockingOperations)?.locks }

    fileprivate func finishLock(_ result: Result<LockAnswer, Failure>) {
        finish(result) { request, answer in fuse_reply_err(request, answer.problem) }
    }
}

private func serveTestLock(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?,
    _ lock: UnsafeMutablePointer<flock>?
) {
    let reply = Reply(request!, .testLock, NodeID(node))
    guard let locks = reply.locks else { return reply.fail(noLocks) }
    reply.park(
        locks.testLock(
            FileLock(lock!.pointee), of: NodeID(node), handle: file!.handle,
            owner: file!.pointee.lock_owner
        ) { result in
            reply.finish(result) { request, answer in
                if answer.problem != 0 { return fuse_reply_err(request, answer.problem) }
                var found = flock(answer.found)
                return fuse_reply_lock(request, &found)
            }
        })
}

private func serveSetLock(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?,
    _ lock: UnsafeMutablePointer<flock>?, _ waits: CInt
) {
    set(FileLock(lock!.pointee), waits: waits != 0, request!, node, file!)
}

private func serveLockFile(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?,
    _ operation: CInt
) {
    let mode: FileLock.Mode =
        operation & LOCK_UN != 0 ? .none : operation & LOCK_EX != 0 ? .exclusive : .shared
    set(
        FileLock(kind: .whole, mode: mode, process: fuse_req_ctx(request).pointee.pid),
        waits: operation & LOCK_NB == 0, request!, node, file!)
}

private func set(
    _ lock: FileLock, waits: Bool, _ request: OpaquePointer, _ node: fuse_ino_t,
    _ file: UnsafeMutablePointer<fuse_file_info>
) {
    let reply = Reply(request, .setLock, NodeID(node))
    guard let locks = reply.locks else { return reply.fail(noLocks) }
    reply.park(
        locks.setLock(
            lock, waits: waits, of: NodeID(node), handle: file.handle,
            owner: file.pointee.lock_owner
        ) { reply.finishLock($0) })
}

private func serveFlush(
    _ request: OpaquePointer?, _ node: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    let reply = Reply(request!, .flush, NodeID(node))
    guard let locks = reply.locks else { return reply.finish(.success(())) }
    reply.park(
        locks.flush(
            NodeID(node), handle: file!.handle, owner: file!.pointee.lock_owner
        ) { reply.finishLock($0) })
}

private let noLocks = Failure(.notSupported, "this mount's kernel keeps locks itself")
