import PromiseCore

/// Log lines that come again and again are counted, and so are those that say the same of one thing
/// after the other: a server that refuses everything would fill the disk. Pure.
struct RepeatedLines: Sendable {
    private struct Known: Sendable {
        var since: Timestamp
        var count = 0
        /// Of a message: lines that were written.
        var writtenCount = 0
    }

    static let seconds: Int64 = 60
    /// Lines of one message that differ, in that time.
    static let differingMax = 100
    private static let linesMax = 256
    private var lines: [String: Known] = [:]
    private var messages: [String: Known] = [:]
    private var nextLook = Timestamp.zero

    /// Nil when it is not to be written: it was less than a minute ago, or too many that differ
    /// little. Else how often it came unwritten since.
    mutating func take(_ line: String, of message: String = "", at now: Timestamp) -> Int? {
        if let found = lines[line], RepeatedLines.isRecent(found, now) {
            lines[line]?.count += 1
            return nil
        }
        if !message.isEmpty, !mayWrite(message, now) { return nil }
        let count = lines.removeValue(forKey: line)?.count ?? 0
        RepeatedLines.makeRoom(in: &lines, now)
        lines[line] = Known(since: now)
        return count
    }

    /// What was counted and not told, of lines (whole) and of messages, whose minute is over.
    mutating func due(
        at now: Timestamp
    ) -> (lines: [(text: String, count: Int)], messages: [(text: String, count: Int)]) {
        let age = now.nanoseconds(since: nextLook)
        guard age >= 0 || age < -RepeatedLines.seconds * 1_000_000_000 else { return ([], []) }
        nextLook = Timestamp(nanoseconds: now.rawValue + RepeatedLines.seconds * 1_000_000_000)
        return (RepeatedLines.takeOld(&lines, now), RepeatedLines.takeOld(&messages, now))
    }

    private static func takeOld(
        _ known: inout [String: Known], _ now: Timestamp
    ) -> [(text: String, count: Int)] {
        let old = known.filter { !isRecent($0.value, now) }
        for key in old.keys { known[key] = nil }
        return old.filter { $0.value.count > 0 }.map { ($0.key, $0.value.count) }.sorted { $0.0 < $1.0 }
    }

    private mutating func mayWrite(_ message: String, _ now: Timestamp) -> Bool {
        var found = messages[message] ?? Known(since: now)
        if !RepeatedLines.isRecent(found, now) {
            // What was counted is told when its minute is over, or with the next ones.
            found.since = now
            found.writtenCount = 0
        }
        let mayWrite = found.writtenCount < RepeatedLines.differingMax
        if mayWrite { found.writtenCount += 1 } else { found.count += 1 }
        if messages[message] == nil { RepeatedLines.makeRoom(in: &messages, now) }
        messages[message] = found
        return mayWrite
    }

    private static func makeRoom(in known: inout [String: Known], _ now: Timestamp) {
        guard known.count >= linesMax else { return }
        known = known.filter { isRecent($0.value, now) }
        if known.count >= linesMax { known = [:] }
    }

    /// A clock that was set back makes nothing recent for ever.
    private static func isRecent(_ line: Known, _ now: Timestamp) -> Bool {
        let age = now.nanoseconds(since: line.since)
        return age >= 0 && age < RepeatedLines.seconds * 1_000_000_000
    }
}
