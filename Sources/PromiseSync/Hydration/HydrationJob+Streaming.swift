import PromiseCore
import PromiseSystem

/// A file that is larger than the room there is: what somebody has read makes place for what is read next.
extension HydrationJob {
    /// Who was told that these bytes are here has read them.
    func handedOver(_ ranges: [ByteRange]) {
        if ranges.isEmpty { return }
        state.update { state in
            for range in ranges {
                if let place = state.serving.firstIndex(of: range) { state.serving.remove(at: place) }
            }
        }
    }

    func missingCount(in range: ByteRange) -> UInt64 {
        state.withLock { $0.plan.present.missing(in: range).reduce(0) { $0 + $1.count } }
    }

    /// Nobody wants all of it.
    var mayStream: Bool {
        state.withLock { state in
            !state.isClosed && !state.isCompleting && !state.isWantedInBackground
                && !state.waiters.contains { $0.range == nil }
        }
    }

    /// There is room for so much of the file at a time: no more is fetched ahead than that allows.
    func stream(within room: UInt64) { state.withLock { $0.plan.stream(within: room) } }

    /// True for one, who calls `endTrimming`.
    func beginTrimming() -> Bool {
        state.withLock { state in
            defer { state.isTrimming = true }
            return !state.isTrimming
        }
    }

    func endTrimming() { state.withLock { $0.isTrimming = false } }

    /// There was no room for a fetch. False when waiting is in vain: no other one is on its way, or that was so too often.
    func starves(besides range: ByteRange, countMax: Int) -> Bool {
        state.withLock { state in
            state.starvationCount += 1
            return state.plan.inFlight.contains { $0 != range } && state.starvationCount <= countMax
        }
    }

    /// Takes away about so many bytes of what is here, but for what somebody waits for, is being given or fetched; nil when
    /// there is nothing to take. Until `endDropping` nothing lands there.
    func beginDropping(_ byteCount: UInt64) -> [ByteRange]? {
        state.withLock { state in
            guard !state.isClosed, !state.isCompleting, state.claims.isEmpty else { return nil }
            let kept = state.serving + state.landing + state.waiters.compactMap(\.range)
            let ranges = state.plan.expendable(byteCount, besides: kept)
            guard !ranges.isEmpty else { return nil }
            for range in ranges { state.plan.dropped(range) }
            state.landing += ranges
            state.starvationCount = 0
            return ranges
        }
    }

    func endDropping(_ ranges: [ByteRange], areGone: Bool) {
        state.update { state in
            state.landing.removeAll { ranges.contains($0) }
            if !areGone { for range in ranges { state.plan.stayed(range) } }
        }
    }
}
