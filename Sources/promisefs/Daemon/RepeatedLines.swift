import PromiseCore

/// Log lines that come again and again are counted: a server that refuses everything would fill the
/// disk. Pure.
struct RepeatedLines: Sendable {
    private struct Known: Sendable {
        var since: Timestamp
        var count = 0
    }

    static let seconds: Int64 = 60
    private static let linesMax = 256
    private var known: [String: Known] = [:]

    /// Nil when it was written less than a minute ago. Else how often it came unwritten since.
    mutating func take(_ line: String, at now: Timestamp) -> Int? {
        if let found = known[line], isRecent(found, now) {
            known[line]?.count += 1
            return nil
        }
        let count = known.removeValue(forKey: line)?.count ?? 0
        if known.count >= RepeatedLines.linesMax {
            known = known.filter { isRecent($0.value, now) }
            if known.count >= RepeatedLines.linesMax { known = [:] }
        }
        known[line] = Known(since: now)
        return count
    }

    /// A clock that was set back makes nothing recent for ever.
    private func isRecent(_ line: Known, _ now: Timestamp) -> Bool {
        let age = now.nanoseconds(since: line.since)
        return age >= 0 && age < RepeatedLines.seconds * 1_000_000_000
    }
}
