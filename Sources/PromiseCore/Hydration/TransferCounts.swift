/// What was moved between a domain and its provider since `since`: for which program, and what was sent.
/// It can be kept as text, a line for each.
package struct TransferCounts: Sendable, Hashable {
    /// When counting began; nil: it is not known yet.
    package var since: Timestamp?
    package var sentByteCount: UInt64 = 0
    package var ledger = HydrationLedger()

    private static let sentMax = UInt64.max / 4
    /// A name in `/proc` has 255 bytes, of which each may be shown by four.
    private static let programCountMax = 256

    package init() {}

    package var isEmpty: Bool { sentByteCount == 0 && ledger.isEmpty }

    package mutating func sent(_ count: UInt64) {
        let most = TransferCounts.sentMax
        sentByteCount = min(min(sentByteCount, most) + min(count, most), most)
    }

    package mutating func add(_ other: TransferCounts) {
        since = [since, other.since].compactMap(\.self).min()
        sent(other.sentByteCount)
        ledger.add(other.ledger)
    }

    /// What was counted by then, and is in another one now.
    package mutating func remove(_ other: TransferCounts) {
        sentByteCount -= min(sentByteCount, other.sentByteCount)
        ledger.remove(other.ledger)
    }

    // MARK: As text

    package var text: String {
        var lines = ["since \(since?.rawValue ?? 0)", "sent \(sentByteCount)"]
        for line in ledger.lines {
            let program = line.program.prefix(TransferCounts.programCountMax)
            lines.append("\(line.fetches) \(line.bytes) \(line.refusals) \(program)")
        }
        return lines.joined(separator: "\n")
    }

    /// Whether all of a text was understood.
    package static func isWhole(_ text: String) -> Bool { TransferCounts(text: text).text == text }

    /// What cannot be read of it is left out: nothing but these numbers depends on it.
    package init(text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3)
            if words.count == 2, words[0] == "since", let time = Int64(words[1]), time > 0 {
                since = Timestamp(rawValue: time)
            } else if words.count == 2, words[0] == "sent", let count = UInt64(words[1]) {
                sent(count)
            } else if words.count == 4, let fetches = UInt64(words[0]), let bytes = UInt64(words[1]),
                let refusals = UInt64(words[2])
            {
                var known = HydrationLedger.Line(program: String(words[3]))
                (known.fetches, known.bytes, known.refusals) = (fetches, bytes, refusals)
                ledger.add(known)
            }
        }
    }
}
