import PromiseCore
import PromiseIndex

extension Telling {
    /// Longer than any work is put off by itself.
    private static let longestPause = Duration.seconds(15 * 60)

    /// When work is due is kept by the wall clock. Where that has been set back, or went wrong when the domain was mounted the
    /// last time, work would wait until it is as late again: a day, or years.
    static func heedClock(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        let now = turn.now
        let lead = now.time.rawValue - now.uptime.nanoseconds
        let before = turn.memory.clockLead
        let change = before.map { lead - $0 } ?? .max
        if abs(change) < 100_000_000 { return }
        turn.remember { $0.clockLead = lead }
        if before == nil {
            let pause = max(longestPause, turn.facts.configuration.uploadDelay * 2)
            try transaction.makePendingDue(at: now.time, after: now.time.advanced(by: pause))
        } else if change < 0 {
            try transaction.makePendingDue(at: now.time)
        }
    }
}
