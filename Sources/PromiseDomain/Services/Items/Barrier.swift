import PromiseCore
import PromiseSync
import PromiseSystem

/// Looks at the provider now, and waits until that, or all work, is done.
struct Barrier {
    let engine: SyncEngine
    let clock: any TimeSource
    /// What waits below the scope; nil: all there is counts, of which the engine knows how much.
    let below: (() throws(Failure) -> WorkBelow)?

    /// The provider is asked once more before it is believed to be away, and may be slow to answer.
    private static let probePatience = Duration.seconds(6)
    /// When nothing has been sent for so long, besides the upload delay, while something fails, the rest waits for that: what
    /// is new in a folder that the provider refuses.
    private static let stillPatience = Duration.seconds(5)
    /// A folder that the provider refuses is looked at again and again, which is no progress.
    private static let shortLook = Duration.seconds(1)
    /// How long a look may take that nobody gave a time for. It goes on by itself.
    private static let lookPatience = Duration.seconds(60)

    private static let paused = Failure(.busy, "the domain is paused; go on by: promisefs resume")

    /// Throws what stands in the way: `.offline`, `.refused`, `.timedOut`, or why the oldest work
    /// cannot be done. Whoever waits for no more than a look is never told that there was one when
    /// there was none.
    func wait(untilDone: Bool, timeout: Duration?) async throws(Failure) {
        engine.lookNow()
        if untilDone { engine.setDraining(true) }
        defer { if untilDone { engine.setDraining(false) } }
        let start = clock.uptime()
        var offlineSince: Duration?
        var lookTime = Duration.zero
        var (leftBefore, changed) = (-1, start)
        var lookSince: Duration?
        var stuck = StuckWork()
        while true {
            // Polling is enough for a barrier: it is rare, and what it waits for takes milliseconds at least. What there is much
            // to look at for is not looked at all the time.
            try? await Task.sleep(for: max(.milliseconds(20), lookTime * 10))
            if Task.isCancelled { throw Failure(.interrupted, "the wait was cancelled") }
            let now = clock.uptime()
            if let failure = engine.connectionFailure {
                let since = offlineSince ?? now
                offlineSince = since
                let patience: Duration = engine.isProbing ? Barrier.probePatience : .milliseconds(500)
                if now - since > patience || timeout.map({ now - start > $0 }) ?? false { throw failure }
                continue
            }
            offlineSince = nil
            let remainder = try engine.remainder()
            if let trouble = engine.trouble, now - start > .seconds(6) { throw trouble }
            if !untilDone {
                if !remainder.isLooking { return try throwUnlisted() }
                if now - start > timeout ?? Barrier.lookPatience {
                    throw Failure(.timedOut, "the look at the provider is not over; it goes on, and 'sync --wait' waits for it")
                }
                continue
            }
            let work = try below?() ?? WorkBelow(allOf: engine, remainder)
            let left = work.count
            lookTime = clock.uptime() - now
            if left == 0 && !remainder.isLooking { return try throwUnlisted() }
            if left > 0, engine.pausedSince != nil, !work.isRunning { throw Barrier.paused }
            let isStuck =
                left > 0 && work.failing >= left && !remainder.isLooking
                && now - start > .seconds(2)
            let problem = isStuck ? try obstacle(of: work) : nil
            if stuck.isHopeless(isStuck, problem?.code, at: now) {
                throw problem ?? Failure(.refused, "the provider refuses it")
            }
            lookSince = remainder.isLooking ? lookSince ?? now : nil
            let isLongLook = lookSince.map { now - $0 > Barrier.shortLook } ?? false
            if work.isRunning || isLongLook || left != leftBefore { (leftBefore, changed) = (left, now) }
            if work.failing > 0, now - changed > Barrier.stillPatience + engine.uploadDelay {
                let problem = try obstacle(of: work)
                if now - changed > StuckWork.patience(for: problem?.code) {
                    throw problem ?? Failure(.refused, "the provider refuses it")
                }
            }
            if let timeout, now - start > timeout {
                throw Failure(.timedOut, try obstacle(of: work)?.message ?? "the time given was not enough")
            }
        }
    }

    private func obstacle(of work: WorkBelow) throws(Failure) -> Failure? {
        try below == nil ? engine.obstacle() : work.obstacle
    }

    /// Nobody has looked into a folder that could not be listed.
    private func throwUnlisted() throws(Failure) {
        guard below == nil, let failure = try engine.folderFailure() else { return }
        throw failure
    }
}
