import PromiseCore

/// How much the line to the provider carries, lately. Fetches side by side hide the way there and back; where the line is what
/// takes the time, they only take it from each other, and from what a program waits for. So no more is fetched ahead of
/// programs than the line carries in a moment. Pure.
package struct LineSpeed: Sendable {
    /// Seconds, which whoever opens another file or reads elsewhere waits for at most. Shorter than the way there and back it
    /// would never fill the line, and what is known of that would be less and less.
    private static let moment = 1.0
    /// What takes no line long, and tells nothing of it.
    private static let byteCountMin: UInt64 = 64 << 10
    /// As long as nothing is known.
    private static let byteCountAtFirst: UInt64 = 4 << 20
    /// What is known fades by so much with each fetch that was slower.
    private static let fading = 0.3

    /// Bytes a second; nil: not known yet.
    private var speed: Double?

    package init() {}

    /// A fetch has ended, and so much has come meanwhile, by others that ran beside it, too.
    package mutating func came(_ byteCount: UInt64, in duration: Duration) {
        let seconds = Double(duration.nanoseconds) / 1e9
        guard byteCount >= LineSpeed.byteCountMin, seconds > 0 else { return }
        let sample = Double(byteCount) / seconds
        guard let before = speed, sample < before else {
            speed = sample
            return
        }
        speed = before + (sample - before) * LineSpeed.fading
    }

    /// Bytes that may be under way ahead of programs.
    package var byteCountAhead: UInt64 {
        guard let speed else { return LineSpeed.byteCountAtFirst }
        return max(UInt64(min(speed * LineSpeed.moment, 1e15)), LineSpeed.byteCountMin)
    }
}
