import CFuse
import CFuseTransport
import Glibc
import Logging
import PromiseCore
import PromiseFilesystem
import PromiseSystem

/// The thread that tells the kernel what is no longer right. The kernel takes the locks of the folder or the pages for it
/// and may wait for a request that is being served: sent from a serving thread, that would be for ever.
///
/// Unchecked because the session is a pointer of libfuse's: only the queue's own thread uses it, and the session is freed
/// only when `stop` has seen that thread leave.
final class NotificationQueue: KernelNotifier, @unchecked Sendable {
    private enum Notification {
        case entry(FileName, parent: NodeID)
        case expiry(FileName, parent: NodeID)
        case deletion(FileName, node: NodeID, parent: NodeID)
        case attributes(NodeID)
        case content(NodeID, ByteRange?)
    }

    private struct State {
        var waiting: [Notification] = []
        var noted: UInt64 = 0
        var told: UInt64 = 0
        var isStopped = false
        var hasLeft = false
    }

    private let session: OpaquePointer
    private let logger: Logger
    // Not bounded: dropping one would leave the kernel with what is wrong. Callers notify of what they have committed.
    private let state = Monitor(State())

    init(session: OpaquePointer, logger: Logger) {
        self.session = session
        self.logger = logger
        let device = fuse_session_fd(session)
        _ = OwnedThread(name: "pfs-notify") { [self] in
            // Nobody joins it: `stop` waits for it with a limit.
            pthread_detach(pthread_self())
            ct_keep_only(device)
            work()
            state.update { $0.hasLeft = true }
        }
    }

    func invalidateEntry(_ name: FileName, in parent: NodeID) { append(.entry(name, parent: parent)) }
    func expireEntry(_ name: FileName, in parent: NodeID) { append(.expiry(name, parent: parent)) }
    func deleteEntry(_ name: FileName, of node: NodeID, in parent: NodeID) { append(.deletion(name, node: node, parent: parent)) }
    func invalidateAttributes(of node: NodeID) { append(.attributes(node)) }
    func invalidateContent(of node: NodeID, range: ByteRange?) { append(.content(node, range)) }

    var progress: (noted: UInt64, told: UInt64) {
        state.withLock { (noted: $0.noted, told: $0.isStopped ? $0.noted : $0.told) }
    }

    /// Drops what waits and ends the thread. False when it has not left in time, because the kernel holds a notification
    /// back: then it may still use the session.
    func stop(within timeout: Duration) -> Bool {
        state.update { state in
            state.isStopped = true
            state.waiting = []
        }
        return state.wait(timeout: timeout) { $0.hasLeft ? true : nil } ?? false
    }

    private func append(_ notification: Notification) {
        state.update { state in
            guard !state.isStopped else { return }
            state.waiting.append(notification)
            state.noted += 1
        }
    }

    private func work() {
        while true {
            let batch: [Notification]? = state.wait { state in
                if state.isStopped { return [] }
                guard !state.waiting.isEmpty else { return nil }
                defer { state.waiting = [] }
                return state.waiting
            }
            guard let batch, !batch.isEmpty else { return }
            for notification in batch {
                deliver(notification)
                // Nobody is called here: this thread has no descriptors but the device's, and neither would those it starts.
                state.withLock { $0.told += 1 }
            }
        }
    }

    private func deliver(_ notification: Notification) {
        switch notification {
        case .entry(let name, let parent):
            let count = name.bytes.count
            withCPath(name.bytes) { _ = fuse_lowlevel_notify_inval_entry(session, fuse_ino_t(parent.rawValue), $0, count) }
        case .expiry(let name, let parent):
            let count = name.bytes.count
            withCPath(name.bytes) {
                _ = fuse_lowlevel_notify_expire_entry(session, fuse_ino_t(parent.rawValue), $0, count, FUSE_LL_EXPIRE_ONLY)
            }
        case .deletion(let name, let node, let parent):
            let count = name.bytes.count
            withCPath(name.bytes) {
                _ = fuse_lowlevel_notify_delete(session, fuse_ino_t(parent.rawValue), fuse_ino_t(node.rawValue), $0, count)
            }
        case .attributes(let node):
            // A negative offset means attributes only (fuse_lowlevel.h).
            _ = fuse_lowlevel_notify_inval_inode(session, fuse_ino_t(node.rawValue), -1, 0)
        case .content(let node, let range):
            // A length of 0 means to the end.
            let count = range.map { $0.upper > UInt64(Int64.max) ? 0 : Int64($0.count) } ?? 0
            _ = fuse_lowlevel_notify_inval_inode(
                session, fuse_ino_t(node.rawValue), off_t(clamping: range?.lower ?? 0), off_t(count))
        }
        let problem = ct_notification_error()
        // ENOENT: the kernel does not know it. ENOTEMPTY, EBUSY: it is in use and stays until it is let go. ENODEV: the end.
        if ![0, ENOENT, ENOTEMPTY, EBUSY, ENOTDIR, ENODEV].contains(problem) {
            logger.warning("the kernel did not take a notification", metadata: ["errno": "\(problem)"])
        }
    }
}
