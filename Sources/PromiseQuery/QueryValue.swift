/// A value that a predicate compares: what an attribute of an item is, or a literal.
package enum QueryValue: Hashable, Sendable {
    /// The attribute is not known or does not apply.
    case null
    case truth(Bool)
    case integer(Int64)
    case real(Double)
    /// UTF-8. Compared code point by code point, never normalised unless `[d]` asks for it.
    case text([UInt8])
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    case time(Int64)
    case list([QueryValue])

    package static func text(_ text: String) -> QueryValue { .text(Array(text.utf8)) }
}

extension QueryValue {
    /// What comparing with it costs, where a short value is 1.
    var weight: Int {
        switch self {
        case .null, .truth, .integer, .real, .time: 1
        // Each comparison may fold it, which takes longer where it is not ASCII.
        case .text(let text): 1 + text.count / (text.allSatisfy { $0 < 0x80 } ? 100 : 20)
        case .list(let elements): elements.reduce(1) { $0 + $1.weight }
        }
    }

    /// Less, equal or greater; nil for values that have no order between them.
    func order(against other: QueryValue) -> Int? {
        switch (self, other) {
        case (.text(let left), .text(let right)):
            return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
        case (.time(let left), .time(let right)): return left == right ? 0 : left < right ? -1 : 1
        default:
            guard let left = number, let right = other.number else { return nil }
            switch (left, right) {
            case (.integer(let left), .integer(let right)): return left == right ? 0 : left < right ? -1 : 1
            default:
                let (left, right) = (left.asReal, right.asReal)
                if left.isNaN || right.isNaN { return nil }
                return left == right ? 0 : left < right ? -1 : 1
            }
        }
    }

    private enum Number {
        case integer(Int64)
        case real(Double)

        var asReal: Double {
            switch self {
            case .integer(let value): Double(value)
            case .real(let value): value
            }
        }
    }

    /// Truth counts as 1 and 0, as in NSNumber.
    private var number: Number? {
        switch self {
        case .truth(let value): .integer(value ? 1 : 0)
        case .integer(let value): .integer(value)
        case .real(let value): .real(value)
        case .null, .text, .time, .list: nil
        }
    }
}

extension QueryValue {
    /// For sorting: negative, 0 or positive. What is not known comes last, in both directions; of lists the first elements
    /// that differ decide; what cannot be compared stays as it was.
    package func sortOrder(against other: QueryValue, isDescending: Bool = false) -> Int {
        switch (self, other) {
        case (.null, .null): return 0
        case (.null, _): return 1
        case (_, .null): return -1
        case (.list(let left), .list(let right)):
            let differing = zip(left, right).lazy.map { $0.sortOrder(against: $1) }.first { $0 != 0 }
            let order = differing ?? (left.count - right.count)
            return isDescending ? -order : order
        default:
            let order = order(against: other) ?? 0
            return isDescending ? -order : order
        }
    }
}
