import PromiseCore
import PromiseDomain
import Testing

/// What `sync --wait PATH` waits for.
@Suite struct WorkBelowTests {
    private func work(
        _ kind: PendingWork.Kind, isRunning: Bool = false, _ code: Failure.Code? = nil, _ error: String? = nil
    ) -> PendingWork {
        var work = PendingWork(
            kind: kind, node: nil, path: [], isRunning: isRunning, size: 1, progress: nil, since: .zero, attempts: 1,
            error: error)
        work.code = code
        return work
    }

    /// Work was given up below a place where nothing had failed, as something else had.
    @Test func onlyWhatIsBelowThePlaceFailsThere() {
        let waiting = WorkBelow([work(.upload), work(.create, isRunning: true)])
        #expect(waiting.count == 2 && waiting.failing == 0 && waiting.isRunning)
        #expect(waiting.obstacle == nil)
        let refused = WorkBelow([work(.upload), work(.move, .refused, "no"), work(.delete, .busy, "locked")])
        #expect(refused.count == 3 && refused.failing == 2 && !refused.isRunning)
        #expect(refused.obstacle?.code == .refused && refused.obstacle?.message == "no")
    }

    /// Of a provider that is away everything has a reason, and none of it was refused.
    @Test func whatWaitsForTheConnectionDoesNotFail() {
        let away = WorkBelow([work(.upload, nil, "the provider is away"), work(.download), work(.list, .refused, "closed")])
        #expect(away.count == 1 && away.failing == 0)
    }
}
