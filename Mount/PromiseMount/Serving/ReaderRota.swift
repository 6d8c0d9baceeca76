/// Which of several threads reads the device next. Pure: the owner holds the lock, tells the time and does what is answered.
///
/// One thread reads and serves as long as it keeps up: it stays on the processor of its callers, with warm memory, while
/// several readers would be woken in turn. Another one takes over when a request takes long, and joins when requests wait.
package struct ReaderRota {
    /// How long a request may be served before somebody else reads.
    package static let patience: UInt64 = 2_000_000
    /// So many requests in a row that were there before they were read: one reader is too few.
    static let streakMax = 3
    /// How long a second reader then stays.
    static let boost: UInt64 = 10_000_000

    package enum Turn: Equatable, Sendable {
        case read
        /// Until the timer says so. `watches`: it must be set to `patience` first.
        case rest(watches: Bool)
        case end
    }

    package enum Timer: Equatable, Sendable { case leave, afterPatience, now }

    private var reading = 0
    private var isEnded = false
    /// The timer is set.
    private var isWatched = false
    /// Since when nobody reads.
    private var unreadSince: UInt64 = 0
    private var streak = 0
    private var boostEnd: UInt64 = 0
    private var receivedCount: UInt64 = 0
    private var lastReceivedCount: UInt64 = 0

    package init() {}

    /// A thread has nothing to do: it comes from serving, or from its rest. Times are nanoseconds of one clock.
    package mutating func turn(isRested: Bool, now: UInt64) -> Turn {
        if isEnded { return .end }
        if isRested { isWatched = false }
        let isBoosted = now < boostEnd
        let isLate = !isRested || now - unreadSince >= Self.patience
        let isNeeded = reading == 0 ? isLate || isBoosted : reading < 2 && isBoosted
        if isNeeded {
            reading += 1
            return .read
        }
        // Somebody serves, and may turn out to take long.
        let watches = reading == 0 && !isWatched
        if watches { isWatched = true }
        return .rest(watches: watches)
    }

    /// A reader has received a request. `wasThere`: it did not have to wait for it.
    package mutating func received(wasThere: Bool, now: UInt64) -> Timer {
        reading -= 1
        receivedCount &+= 1
        streak = wasThere ? streak + 1 : 0
        guard reading == 0 else { return .leave }
        unreadSince = now
        if streak >= Self.streakMax {
            streak = 0
            boostEnd = now + Self.boost
            isWatched = true
            return .now
        }
        if isWatched { return .leave }
        isWatched = true
        return .afterPatience
    }

    package mutating func end() { isEnded = true }

    /// Somebody can read the next request, or has read one since this was asked last. Else every thread has been serving one
    /// and the same request all the time.
    package mutating func isServing() -> Bool {
        defer { lastReceivedCount = receivedCount }
        return isEnded || reading > 0 || receivedCount != lastReceivedCount
    }
}
