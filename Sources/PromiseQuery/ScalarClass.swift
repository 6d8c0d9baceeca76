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
    var kinds: [Kind] = []
    var isNegated = false

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        (ranges.contains { $0.contains(scalar.value) } || kinds.contains { $0.contains(scalar) }) != isNegated
    }

    /// Adds what the members become in a text that was folded, as the text is and the class is not.
    mutating func fold(_ folding: TextFolding) {
        if folding.isEmpty { return }
        for (from, to) in folding.replacements where ranges.contains(where: { $0.contains(from) }) {
            // What comes last is what the next one most often follows, or is in.
            if let last = ranges.last, last.upperBound == to || last.upperBound + 1 == to {
                ranges[ranges.count - 1] = last.lowerBound...to
            } else if !ranges.contains(where: { $0.contains(to) }) {
                ranges.append(to...to)
            }
        }
    }
}
