// Whether an item satisfies a predicate. Pure; the time is bounded by the sizes of the predicate and of the attributes.

extension Predicate {
    package func isSatisfied(by source: some AttributeSource) -> Bool {
        switch self {
        case .constant(let value): value
        case .not(let part): !part.isSatisfied(by: source)
        case .and(let parts): parts.allSatisfy { $0.isSatisfied(by: source) }
        case .or(let parts): parts.contains { $0.isSatisfied(by: source) }
        case .comparison(let comparison): comparison.isSatisfied(by: source)
        }
    }
}

extension Comparison {
    func isSatisfied(by source: some AttributeSource) -> Bool {
        let left = value(of: left, source)
        let right = value(of: right, source)
        switch quantifier {
        case .one: return holdsOfLists(left, right)
        case .any: return elements(of: left).contains { holds($0, right) }
        case .all: return elements(of: left).allSatisfy { holds($0, right) }
        case .none: return !elements(of: left).contains { holds($0, right) }
        }
    }

    private func value(of operand: Operand, _ source: some AttributeSource) -> QueryValue {
        switch operand {
        case .key(let key): source.value(of: key)
        case .value(let value): value
        }
    }

    private func elements(of value: QueryValue) -> [QueryValue] {
        switch value {
        case .list(let elements): elements
        case .null: []
        default: [value]
        }
    }

    /// A list beside a value is compared as NSMetadataQuery does it: any element will do, and `!=` is that none is equal.
    private func holdsOfLists(_ left: QueryValue, _ right: QueryValue) -> Bool {
        switch relation {
        case .contains: return holds(left, right)
        case .isIn, .between:
            guard case .list(let elements) = left else { return holds(left, right) }
            return elements.contains { holds($0, right) }
        default: break
        }
        let isOpposite = relation == .notEqual
        switch (left, right) {
        case (.list, .list): return holds(left, right)
        case (.list(let elements), _): return elements.contains { holds($0, right) != isOpposite } != isOpposite
        case (_, .list(let elements)): return elements.contains { holds(left, $0) != isOpposite } != isOpposite
        default: return holds(left, right)
        }
    }

    private func holds(_ left: QueryValue, _ right: QueryValue) -> Bool {
        switch relation {
        case .equal: isEqual(left, right)
        case .notEqual: !isEqual(left, right)
        case .less: order(left, right).map { $0 < 0 } ?? false
        case .lessOrEqual: order(left, right).map { $0 <= 0 } ?? false
        case .greater: order(left, right).map { $0 > 0 } ?? false
        case .greaterOrEqual: order(left, right).map { $0 >= 0 } ?? false
        case .contains: contains(left, right)
        case .beginsWith: texts(left, right) { $0.starts(with: $1) }
        case .endsWith: texts(left, right) { $0.count >= $1.count && $0.suffix($1.count).elementsEqual($1) }
        case .like, .matches:
            if case .text(let text) = left, let pattern { pattern.matches(folding.fold(text)) } else { false }
        case .isIn: contains(right, left)
        case .between: isBetween(left, right)
        }
    }

    private func isEqual(_ left: QueryValue, _ right: QueryValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.list(let left), .list(let right)):
            left.count == right.count && zip(left, right).allSatisfy { isEqual($0, $1) }
        default: order(left, right) == 0
        }
    }

    private func order(_ left: QueryValue, _ right: QueryValue) -> Int? {
        if case .text(let left) = left, case .text(let right) = right {
            return QueryValue.text(folding.fold(left)).order(against: .text(folding.fold(right)))
        }
        return left.order(against: right)
    }

    private func contains(_ whole: QueryValue, _ part: QueryValue) -> Bool {
        if case .list(let elements) = whole { return elements.contains { isEqual($0, part) } }
        return texts(whole, part) { TextPattern.contains($0, $1) }
    }

    private func isBetween(_ value: QueryValue, _ bounds: QueryValue) -> Bool {
        guard case .list(let bounds) = bounds, bounds.count == 2 else { return false }
        guard let lower = order(value, bounds[0]), let upper = order(value, bounds[1]) else { return false }
        return lower >= 0 && upper <= 0
    }

    private func texts(_ left: QueryValue, _ right: QueryValue, _ body: ([UInt8], [UInt8]) -> Bool) -> Bool {
        guard case .text(let left) = left, case .text(let right) = right else { return false }
        return body(folding.fold(left), folding.fold(right))
    }
}
