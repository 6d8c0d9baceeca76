/// Whether requests come so fast that a processor which falls asleep between two of them costs more than serving them. Pure:
/// the owner holds the lock, tells the time (nanoseconds of one clock) and does what is answered.
package struct RequestBurst {
    /// The owner tells of every so many requests, not of each.
    package static let batch: UInt32 = 16
    /// How long processors are kept awake after what was the reason: a batch in this time is 2,000 requests a second.
    package static let hold: UInt64 = 8_000_000

    package enum Expiry: Equatable, Sendable {
        /// Ask again after so many nanoseconds.
        case later(UInt64)
        case end
    }

    private var lastBatch: UInt64?
    private var holdsUntil: UInt64?

    package init() {}

    /// Processors are kept awake.
    package var isHeld: Bool { holdsUntil != nil }

    /// A batch of requests has come. True: processors are to be kept awake from now on.
    package mutating func batchCame(now: UInt64) -> Bool {
        defer { lastBatch = now }
        guard let lastBatch, now - lastBatch <= Self.hold else { return false }
        return extend(now: now)
    }

    /// A request waits for the provider: others will wake each other for it. As above.
    package mutating func parked(now: UInt64) -> Bool { extend(now: now) }

    /// `hold` has passed since one of the two said so, or the time of `later`.
    package mutating func expired(now: UInt64) -> Expiry {
        if let holdsUntil, holdsUntil > now { return .later(holdsUntil - now) }
        holdsUntil = nil
        return .end
    }

    private mutating func extend(now: UInt64) -> Bool {
        let begins = holdsUntil == nil
        holdsUntil = now + Self.hold
        return begins
    }
}
