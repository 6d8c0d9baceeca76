package import PromiseCore
import PromiseProvider
import PromiseSystem

// Some servers call a file's content something else at each request: no version is there any more when it is fetched.
// Whoever waits is sent on from one to the next a few times, with pauses, and is then told.

extension Hydrator {
    /// What changes twice while it is looked at is fetched at once all the same.
    fileprivate static let promptRestartsMax = 2
    private static let restartsMax = 6

    /// The content of `generation` is gone, and whoever waits for it waits for what is there instead.
    /// Who came since is waiting for that already.
    package func startAgain(_ node: NodeID, _ generation: Generation) {
        let job = state.withLock { $0.jobs[node] }
        if let job, job.generation == generation { startAgain(job) }
    }

    func startAgain(_ job: HydrationJob) {
        guard job.close() else { return job.waitWhileClosing() }
        remove(job)
        guard job.restarts < Hydrator.restartsMax else { return giveUp(job) }
        let node = job.node
        let (waiters, program) = (job.endForSuccessor(), job.program)
        forgetFile(of: job)
        state.withLock { $0.restarts[node] = job.restarts + 1 }
        for waiter in waiters { join(waiter, of: node, for: program) }
        state.withLock { $0.restarts[node] = nil }
    }

    private func giveUp(_ job: HydrationJob) {
        let problem = ProviderError(
            .permanent, "the provider calls it another version each time it is asked: \(job.restarts + 1) of them were tried")
        note(problem, of: job.node)
        job.end(.failure(problem.failure))
        forgetFile(of: job)
    }
}

extension HydrationJob {
    /// Nil: at once, as for all that is asked for the first time, or of which something has come.
    func pauseBeforeFetch(_ backoff: Backoff) -> Duration? {
        guard restarts > Hydrator.promptRestartsMax, progress.present == 0 else { return nil }
        return backoff.delay(after: restarts - Hydrator.promptRestartsMax)
    }
}
