/// A class of characters of a regular expression, `[…]` or `\w`.
struct ScalarClass: Sendable {
    /// What ICU's `\d`, `\s` and `\w` are, in all alphabets.
    enum Kind: Sendable {
        case digit, space, word

        func contains(_ scalar: Unicode.Scalar) -> Bool {
            let category = scalar.properties.generalCategory
            switch self {
            case .digit: return category == .decimalNumber
            case .space:
                switch category {
                case .spaceSeparator, .lineSeparator, .paragraphSeparator: return true
                default: return scalar.value >= 0x09 && scalar.value <= 0x0D || scalar.value == 0x85
                }
            case .word:
                switch category {
                case .nonspacingMark, .spacingMark, .enclosingMark, .decimalNumber, .connectorPunctuation: return true
                default: return scalar.properties.isAlphabetic || scalar.value == 0x200C || scalar.value == 0x200D
                }
            }
        }
    }

    var ranges: [ClosedRange<UInt32>] = []
    /// Each once, however often a pattern names it: every character of a text is looked for in them.
    var kinds: Set<Kind> = []
    var isNegated = false

    /// Of members that are in order.
    func contains(_ scalar: Unicode.Scalar) -> Bool {
        (hasInRanges(scalar.value) || kinds.contains { $0.contains(scalar) }) != isNegated
    }

    /// Brings the members into order: a pattern may name tens of thousands, and each character of a text
    /// is looked for among them at every place of the pattern.
    mutating func sort() {
        var sorted: [ClosedRange<UInt32>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = sorted.last, range.lowerBound <= last.upperBound + 1 {
                sorted[sorted.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                sorted.append(range)
            }
        }
        ranges = sorted
    }

    /// Adds what the members become in a text that was folded, as the text is and the class is not.
    mutating func fold(_ folding: TextFolding) {
        if folding.isEmpty { return }
        sort()
        ranges += folding.replacements.filter { hasInRanges($0.0) }.map { $0.1...$0.1 }
        sort()
    }

    private func hasInRanges(_ value: UInt32) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].contains(value) { return true }
            if ranges[middle].lowerBound > value { high = middle } else { low = middle + 1 }
        }
        return false
    }
}
