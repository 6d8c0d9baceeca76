import PromiseContent
package import PromiseCore
import PromiseSystem

/// What calls on the mount change while the content is fetched: nothing that is fetched lands there.
extension HydrationJob {
    /// Claims a range for bytes a program writes now, with the end of the file if that moves; nil:
    /// ask again, as the job has ended.
    package func claim(_ range: ByteRange) -> ContentClaim? {
        claim { plan in
            range.upper > plan.size ? ByteRange(min(range.lower, plan.size), .max) : range
        }
    }

    /// Claims what is cut off or added when the file gets another size; nil: ask again, as the job
    /// has ended.
    package func claimSize(_ size: UInt64) -> ContentClaim? {
        claim { plan in ByteRange(min(size, plan.size), .max) }
    }

    /// Waits for what lands there, and for others who have claimed it.
    private func claim(_ extent: (HydrationPlan) -> ByteRange) -> ContentClaim? {
        let number: UInt64?? = state.wait { state in
            if state.isClosed { return state.isGone ? .some(nil) : nil }
            let range = extent(state.plan)
            guard state.isFree(range) else { return nil }
            state.claimCount += 1
            state.claims.append(Claim(number: state.claimCount, range: range))
            return .some(state.claimCount)
        }
        guard case .some(.some(let number)) = number else { return nil }
        return ContentClaim(job: self, number: number)
    }

    /// Waits until what others have stored counts as here: the index has their change, or not, and
    /// they say so. Not for ever: one whose disk is full may ask the index once more, and the caller
    /// has that. Bytes of fetches that have not ended do not count: they may be of what others write
    /// at this moment, and from this change on what counts is kept, and sent, as ours.
    func ranges(
        after change: ContentClaim.Change, under number: UInt64, isDurable: Bool
    ) -> ByteRangeSet {
        _ = state.wait(timeout: HydrationJob.otherClaimsPatience) { state in
            state.claims.contains { $0.isBeingStored && $0.number != number } ? nil : true
        }
        return state.withLock { state in
            state.claims[HydrationJob.place(of: number, in: state.claims)].isBeingStored = true
            var plan = state.plan
            plan.apply(change)
            guard isDurable else { return plan.proven }
            var result = plan.proven.without(state.unsynchronized)
            // A program's bytes are here only, whatever a power cut may do to them.
            if case .written(let range) = change { result.insert(range) }
            return result
        }
    }

    private static let otherClaimsPatience = Duration.seconds(1)

    /// `change`: what has come of it. Who waits for what was written, or for what lies beyond the
    /// end, waits for no fetch any more.
    func release(_ number: UInt64, with change: ContentClaim.Change?) {
        let (served, useless) = state.update { state -> ([Waiter], [Task<Void, Never>]) in
            state.claims.remove(at: HydrationJob.place(of: number, in: state.claims))
            guard let change else { return ([], []) }
            state.plan.apply(change)
            if case .written(let range) = change { state.unsynchronized.remove(range) }
            return (state.takeServed(), state.takeFetchesBeyondEnd())
        }
        useless.forEach { $0.cancel() }
        answer(served)
    }

    private static func place(of number: UInt64, in claims: [Claim]) -> Int {
        guard let place = claims.firstIndex(where: { $0.number == number }) else {
            preconditionFailure("a claim is confirmed or withdrawn once")
        }
        return place
    }
}
