import PromiseCore
import PromiseSystem

extension HydrationJob {
    struct Waiter {
        /// 0: not in line yet.
        var id: UInt64 = 0
        /// nil: the whole file, stored as such in the index.
        var range: ByteRange?
        /// Only wants it here, and comes back when it could not be had.
        var isBackground = false
        var reply: HydrationReply
    }

    /// Somebody waits for it, and does not only want it here.
    var isAwaited: Bool { state.withLock { $0.waiters.contains { !$0.isBackground } } }
}
