/// A condition on an item, read from NSPredicate's string format by `PredicateParser`.
package indirect enum Predicate: Sendable {
    case constant(Bool)
    case not(Predicate)
    /// All of them; true when there is none.
    case and([Predicate])
    /// Any of them; false when there is none.
    case or([Predicate])
    case comparison(Comparison)
}

/// Two operands and what is asked of them.
package struct Comparison: Sendable {
    package enum Relation: Sendable {
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
        case contains, beginsWith, endsWith, like, matches
        /// The right side is a list, or a text that contains the left one.
        case isIn
        /// The right side is a list of two.
        case between
    }

    /// Which elements of a list on the left have to satisfy the relation.
    package enum Quantifier: Sendable { case one, any, all, none }

    package enum Operand: Sendable {
        case key(AttributeKey)
        case value(QueryValue)
    }

    package var quantifier = Quantifier.one
    package var left: Operand
    package var relation: Relation
    package var right: Operand
    package var folding = TextFolding()
    /// What `LIKE` and `MATCHES` look for, made once.
    package var pattern: TextPattern?
}

extension Predicate {
    /// Every key that the predicate asks for.
    package var keys: Set<AttributeKey> {
        switch self {
        case .constant: []
        case .not(let part): part.keys
        case .and(let parts), .or(let parts): parts.reduce(into: []) { $0.formUnion($1.keys) }
        case .comparison(let comparison):
            [comparison.left, comparison.right].reduce(into: []) { keys, operand in
                if case .key(let key) = operand { keys.insert(key) }
            }
        }
    }
}

extension Predicate {
    /// What looking at one item costs at most, in comparisons of short values; at least 1.
    package var weight: Int {
        switch self {
        case .constant: 1
        case .not(let part): 1 + part.weight
        case .and(let parts), .or(let parts): parts.reduce(1) { $0 + $1.weight }
        case .comparison(let comparison):
            [comparison.left, comparison.right].reduce(1 + (comparison.pattern?.weight ?? 0)) { weight, operand in
                if case .value(let value) = operand { weight + value.weight } else { weight + 1 }
            }
        }
    }
}

/// Why a text is no predicate. A sentence without a final full stop.
package struct PredicateError: Error, Sendable, Hashable {
    package let message: String
    /// Where, in code points from the start.
    package let position: Int
}
