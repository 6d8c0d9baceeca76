import PromiseCore

/// How much is fetched ahead at a time. Fetches side by side hide the way to the provider and back; where the line is what takes
/// the time, they only take it from each other, and from the file that a program waits for. So no more is under way than the
/// line carries in a moment. Pure.
package struct PrefetchPace: Sendable {
    /// Seconds, which whoever opens another file waits for at most. Shorter than the way there and back it would never fill the
    /// line, and what is known of that would be less and less.
    private static let moment = 1.0
    /// What takes no line long.
    private static let byteCountMin: UInt64 = 64 << 10
    /// As long as nothing is known of the line.
    private static let byteCountAtFirst: UInt64 = 4 << 20
    /// What is known fades by so much with each file that came more slowly.
    private static let fading = 0.3

    /// A fetch under way: its size, when it began, and how much had been fetched of all files by then.
    package struct Fetch: Sendable {
        fileprivate var size: UInt64
        fileprivate var began: Duration
        fileprivate var fetchedBefore: UInt64
    }

    /// Bytes a second; nil: nothing has come yet.
    private var speed: Double?
    private var byteCount: UInt64 = 0

    package init() {}

    /// One file always may.
    package func mayBegin(size: UInt64) -> Bool {
        let most = speed.map { UInt64(min($0 * PrefetchPace.moment, 1e15)) } ?? PrefetchPace.byteCountAtFirst
        return byteCount == 0 || byteCount + size <= max(most, PrefetchPace.byteCountMin)
    }

    /// `fetched`: bytes of all files, ahead or not, that have come so far.
    package mutating func begin(size: UInt64, at now: Duration, fetched: UInt64) -> Fetch {
        byteCount += size
        return Fetch(size: size, began: now, fetchedBefore: fetched)
    }

    package mutating func end(_ fetch: Fetch, at now: Duration, fetched: UInt64) {
        byteCount -= fetch.size
        let seconds = Double((now - fetch.began).nanoseconds) / 1e9
        guard fetched > fetch.fetchedBefore, seconds > 0 else { return }
        let sample = Double(fetched - fetch.fetchedBefore) / seconds
        guard let before = speed, sample < before else {
            speed = sample
            return
        }
        speed = before + (sample - before) * PrefetchPace.fading
    }
}
