package import PromiseQuery

/// What SQL can do of a predicate: necessary conditions, so that fewer rows are looked at. Whether a row satisfies the whole
/// is decided by the predicate itself. Everything that came from the predicate is bound to parameters, nothing becomes SQL.
package struct CandidatePlan: Sendable {
    /// Every name that satisfies the predicate, put between slashes and folded as `[c]` folds, contains it: so `/report` is the
    /// beginning of a name, and `.txt/` the end of one. It is folded itself.
    package private(set) var namePart: String?
    var size: ClosedRange<Int64> = .min ... .max
    var modificationTime: ClosedRange<Int64> = .min ... .max
    var birthTime: ClosedRange<Int64> = .min ... .max
    /// Nothing can satisfy it.
    package private(set) var isEmpty = false

    package init(_ predicate: Predicate) { narrow(predicate) }

    private mutating func narrow(_ predicate: Predicate) {
        switch predicate {
        case .constant(false): isEmpty = true
        case .and(let parts): for part in parts { narrow(part) }
        case .comparison(let comparison): narrow(comparison)
        case .constant(true), .not, .or: break
        }
    }

    private mutating func narrow(_ comparison: Comparison) {
        guard comparison.quantifier == .one, case .key(let key) = comparison.left,
            case .value(let value) = comparison.right
        else { return }
        switch key {
        case .name, .displayName: narrowName(comparison, value)
        case .size: intersect(\.size, comparison.relation, value)
        case .contentChangeDate, .contentModificationDate: intersect(\.modificationTime, comparison.relation, value)
        case .creationDate, .contentCreationDate: intersect(\.birthTime, comparison.relation, value)
        default: break
        }
    }

    // MARK: Ranges

    private mutating func intersect(
        _ range: WritableKeyPath<CandidatePlan, ClosedRange<Int64>>, _ relation: Comparison.Relation, _ value: QueryValue
    ) {
        let bounds: ClosedRange<Int64>?
        switch (relation, value) {
        case (.equal, _): bounds = CandidatePlan.whole(value).map { $0...$0 }
        case (.greater, _), (.greaterOrEqual, _): bounds = CandidatePlan.whole(value).map { $0 ... .max }
        case (.less, _), (.lessOrEqual, _): bounds = CandidatePlan.whole(value).map { .min...$0 }
        case (.between, .list(let values)) where values.count == 2:
            guard let lower = CandidatePlan.whole(values[0]), let upper = CandidatePlan.whole(values[1]) else { return }
            guard lower <= upper else {
                isEmpty = true
                return
            }
            bounds = lower...upper
        default: bounds = nil
        }
        guard let bounds else { return }
        guard bounds.overlaps(self[keyPath: range]) else {
            isEmpty = true
            return
        }
        self[keyPath: range] = bounds.clamped(to: self[keyPath: range])
    }

    /// A fraction narrows nothing; it is rare.
    private static func whole(_ value: QueryValue) -> Int64? {
        switch value {
        case .integer(let number), .time(let number): number
        case .real, .text, .truth, .null, .list: nil
        }
    }

    // MARK: Names

    private mutating func narrowName(_ comparison: Comparison, _ value: QueryValue) {
        // What overlooks accents may find letters that the index of names has under others.
        guard case .text(let text) = value, !comparison.folding.contains(.ignoresDiacritics) else { return }
        // No name contains it, and it separates names in their index.
        guard !text.contains(UInt8(ascii: "/")) else { return }
        let end = [UInt8(ascii: "/")]
        switch comparison.relation {
        case .equal: take(namePart: end + text + end)
        case .contains: take(namePart: text)
        case .beginsWith: take(namePart: end + text)
        case .endsWith: take(namePart: text + end)
        case .like:
            guard !text.contains(UInt8(ascii: "\\")) else { return }
            for part in (end + text + end).split(whereSeparator: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }) {
                take(namePart: Array(part))
            }
        default: break
        }
    }

    /// The longest part finds the fewest names. Where case counts, too, as what is equal is equal when it is folded.
    private mutating func take(namePart bytes: [UInt8]) {
        let folded = TextFolding.ignoresCase.fold(bytes)
        guard folded.count > namePart?.utf8.count ?? 0, let text = String(validating: folded, as: UTF8.self) else { return }
        // Names are displayed without control characters.
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }), NameMatcher(text).isIndexable else { return }
        namePart = text
    }
}
