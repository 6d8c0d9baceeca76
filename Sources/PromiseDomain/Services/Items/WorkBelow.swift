package import PromiseCore
import PromiseSync

/// What waits to be sent, of a whole domain or below one place in it, and what is in its way.
package struct WorkBelow: Sendable {
    package var count: Int
    /// Of these, what the provider did not take when it was told.
    package var failing: Int
    package var isRunning: Bool
    /// Why the oldest of these is not done; of a whole domain the engine is asked.
    package var obstacle: Failure?

    /// What is pending at the place, oldest first.
    package init(_ work: [PendingWork]) {
        let waiting = work.filter(\.isToBeSent)
        let refused = waiting.filter { $0.code != nil }
        count = waiting.count
        failing = refused.count
        isRunning = work.contains(where: \.isRunning)
        obstacle = refused.first.flatMap { work in
            work.code.map { Failure($0, work.error ?? "the provider refuses it") }
        }
    }

    init(allOf engine: SyncEngine, _ remainder: SyncEngine.Remainder) {
        count = remainder.pending
        failing = remainder.failing
        isRunning = engine.uploadingCount > 0 || engine.hydrator.runningCount > 0
    }
}
