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
    private var obstacleSince = Timestamp(nanoseconds: .max)

    /// What is pending at the place.
    package init(_ work: [PendingWork]) {
        (count, failing, isRunning) = (0, 0, false)
        for work in work { add(work) }
    }

    mutating func add(_ work: PendingWork) {
        if work.isRunning { isRunning = true }
        guard work.isToBeSent else { return }
        count += 1
        guard let code = work.code else { return }
        failing += 1
        guard work.since < obstacleSince else { return }
        obstacleSince = work.since
        obstacle = Failure(code, work.error ?? "the provider refuses it")
    }

    init(allOf engine: SyncEngine, _ remainder: SyncEngine.Remainder) {
        count = remainder.pending
        failing = remainder.failing
        isRunning = engine.uploadingCount > 0 || engine.hydrator.runningCount > 0
    }
}
