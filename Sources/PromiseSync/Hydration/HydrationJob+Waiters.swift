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
        /// A program on the mount, which comes back.
        var isProgram = false
        var reply: HydrationReply
    }

    /// Somebody waits for it, and does not only want it here.
    var isAwaited: Bool { state.withLock { $0.waiters.contains { !$0.isBackground } } }

    /// Takes a waiter out without a reply. When nobody is left, what serves nobody is cancelled, but for a small
    /// file that a program opened, and of which something has come since nobody was left last: it is fetched in
    /// one piece that would begin anew, and on a slow line each program would run into its deadline.
    func detach(_ id: UInt64) {
        let abandoned: [Task<Void, Never>] = state.withLock { state in
            // One that was answered already has no say in what is fetched now.
            guard let position = state.waiters.firstIndex(where: { $0.id == id }) else { return [] }
            let waiter = state.waiters.remove(at: position)
            guard state.waiters.isEmpty, !state.isWantedInBackground else { return [] }
            state.plan.wantsWhole = false
            let before = state.presentWhenLeft
            state.presentWhenLeft = state.plan.presentByteCount
            if waiter.isProgram, state.plan.isSmall, state.presentWhenLeft > before { return [] }
            state.abandonedCount += 1
            defer { state.tasks = [:] }
            return Array(state.tasks.values)
        }
        abandoned.forEach { $0.cancel() }
    }
}
