/// Reads NSPredicate's string format ("Predicate Format String Syntax", Apple's Predicate Programming Guide), as far as it
/// makes sense for items: see docs/QUERIES.md.
///
/// Limits keep strangers' predicates small: everything that reads or evaluates one is bounded by them.
package struct PredicateParser {
    package static let byteCountMax = 65_536
    static let depthMax = 100
    /// Its parts, the elements of lists among them, and the instructions of its patterns.
    static let weightMax = 10_000

    private var lexer: PredicateLexer
    private var token = PredicateToken.end
    private var arguments: ArraySlice<QueryValue>
    private var weight = 0

    /// `arguments` stand for `%@` and `%K`, in order; they are values and never read as predicates.
    package static func parse(_ text: String, arguments: [QueryValue] = []) throws(PredicateError) -> Predicate {
        guard text.utf8.count <= byteCountMax else {
            throw PredicateError(message: "a predicate has at most \(byteCountMax) bytes", position: 0)
        }
        var parser = PredicateParser(lexer: PredicateLexer(text), arguments: arguments[...])
        try parser.advance()
        let result = try parser.disjunction(depth: 0)
        guard parser.token == .end else { throw parser.unexpected("the end of the predicate") }
        guard parser.arguments.isEmpty else { throw parser.problem("there are more arguments than places for them") }
        return result
    }

    private init(lexer: PredicateLexer, arguments: ArraySlice<QueryValue>) {
        self.lexer = lexer
        self.arguments = arguments
    }

    // MARK: - Tokens

    private mutating func advance() throws(PredicateError) { token = try lexer.next() }

    private func problem(_ text: String) -> PredicateError { PredicateError(message: text, position: lexer.start) }

    private func unexpected(_ wanted: String) -> PredicateError {
        switch token {
        case .end: problem("the predicate ends where \(wanted) should be")
        case .word(let text), .quotedWord(let text): problem("'\(text)' stands where \(wanted) should be")
        case .symbol(let text): problem("'\(text)' stands where \(wanted) should be")
        default: problem("a value stands where \(wanted) should be")
        }
    }

    private mutating func take(symbol: String...) throws(PredicateError) -> Bool {
        guard case .symbol(let text) = token, symbol.contains(text) else { return false }
        try advance()
        return true
    }

    private mutating func take(symbol: String, word: String) throws(PredicateError) -> Bool {
        if try take(symbol: symbol) { return true }
        return try take(word: word)
    }

    private mutating func take(word: String...) throws(PredicateError) -> Bool {
        guard case .word(let text) = token, word.contains(text.uppercased()) else { return false }
        try advance()
        return true
    }

    private mutating func expect(_ symbol: String) throws(PredicateError) {
        guard try take(symbol: symbol) else { throw unexpected("'\(symbol)'") }
    }

    private mutating func count(_ more: Int = 1) throws(PredicateError) {
        weight += more
        if weight > PredicateParser.weightMax { throw problem("the predicate has too many parts") }
    }

    // MARK: - Compound predicates

    private mutating func disjunction(depth: Int) throws(PredicateError) -> Predicate {
        var parts = [try conjunction(depth: depth)]
        while try take(symbol: "||", word: "OR") { parts.append(try conjunction(depth: depth)) }
        return parts.count == 1 ? parts[0] : .or(parts)
    }

    private mutating func conjunction(depth: Int) throws(PredicateError) -> Predicate {
        var parts = [try negation(depth: depth)]
        while try take(symbol: "&&", word: "AND") { parts.append(try negation(depth: depth)) }
        return parts.count == 1 ? parts[0] : .and(parts)
    }

    private mutating func negation(depth: Int) throws(PredicateError) -> Predicate {
        try count()
        guard depth < PredicateParser.depthMax else { throw problem("the predicate is nested too deeply") }
        if try take(symbol: "!", word: "NOT") { return .not(try negation(depth: depth + 1)) }
        if try take(symbol: "(") {
            let inner = try disjunction(depth: depth + 1)
            try expect(")")
            return inner
        }
        if try take(word: "TRUEPREDICATE") { return .constant(true) }
        if try take(word: "FALSEPREDICATE") { return .constant(false) }
        return .comparison(try comparison())
    }

    // MARK: - Comparisons

    private mutating func comparison() throws(PredicateError) -> Comparison {
        let quantifier = try self.quantifier()
        let left = try operand()
        let relation = try self.relation()
        let folding = try self.folding()
        let right = try operand()
        var result = Comparison(quantifier: quantifier, left: left, relation: relation, right: right, folding: folding)
        try settle(&result)
        try count(result.pattern?.weight ?? 0)
        return result
    }

    private mutating func quantifier() throws(PredicateError) -> Comparison.Quantifier {
        if try take(word: "ANY", "SOME") { return .any }
        if try take(word: "ALL") { return .all }
        if try take(word: "NONE") { return .none }
        return .one
    }

    private mutating func relation() throws(PredicateError) -> Comparison.Relation {
        let relation: Comparison.Relation
        switch token {
        case .symbol("="), .symbol("=="): relation = .equal
        case .symbol("!="), .symbol("<>"): relation = .notEqual
        case .symbol("<"): relation = .less
        case .symbol("<="), .symbol("=<"): relation = .lessOrEqual
        case .symbol(">"): relation = .greater
        case .symbol(">="), .symbol("=>"): relation = .greaterOrEqual
        case .word(let word):
            switch word.uppercased() {
            case "CONTAINS": relation = .contains
            case "BEGINSWITH": relation = .beginsWith
            case "ENDSWITH": relation = .endsWith
            case "LIKE": relation = .like
            case "MATCHES": relation = .matches
            case "IN": relation = .isIn
            case "BETWEEN": relation = .between
            case "NOT": throw problem("write NOT before the whole comparison")
            default: throw unexpected("an operator")
            }
        default: throw unexpected("an operator")
        }
        try advance()
        return relation
    }

    /// `[c]`, `[d]`, `[cd]`; `n` and `l` (literal, localized) change nothing.
    private mutating func folding() throws(PredicateError) -> TextFolding {
        guard try take(symbol: "[") else { return [] }
        guard case .word(let letters) = token else { throw unexpected("'c', 'd' or 'cd'") }
        var result = TextFolding()
        for letter in letters.lowercased() {
            switch letter {
            case "c": result.insert(.ignoresCase)
            case "d": result.insert(.ignoresDiacritics)
            case "n", "l": break
            default: throw unexpected("'c', 'd' or 'cd'")
            }
        }
        try advance()
        try expect("]")
        return result
    }

    // MARK: - Operands

    private mutating func operand() throws(PredicateError) -> Comparison.Operand {
        switch token {
        case .quotedWord(let name):
            try advance()
            return .key(try key(name))
        case .keyArgument:
            guard case .text(let name)? = arguments.popFirst() else { throw problem("'%K' needs an argument that is a text") }
            let result = try key(String(decoding: name, as: UTF8.self))
            try advance()
            return .key(result)
        case .word(let name):
            if let value = try keyword(name, 0) { return .value(value) }
            let result = try key(name)
            try advance()
            return .key(result)
        default: return .value(try value(depth: 0))
        }
    }

    private func key(_ name: String) throws(PredicateError) -> AttributeKey {
        guard let key = AttributeKey(spelled: name) else {
            throw problem("'\(name)' is no attribute; docs/QUERIES.md has them all, and a text is written in quotes")
        }
        return key
    }

    private mutating func value(depth: Int) throws(PredicateError) -> QueryValue {
        guard depth < PredicateParser.depthMax else { throw problem("the predicate is nested too deeply") }
        try count()
        let result: QueryValue
        switch token {
        case .text(let text): result = .text(text)
        case .integer(let number): result = .integer(number)
        case .real(let number): result = .real(number)
        case .argument:
            guard let argument = arguments.popFirst() else { throw problem("there are fewer arguments than places for them") }
            try count(argument.weight)
            result = argument
        case .variable(let name): return try time(name)
        case .symbol("{"), .symbol("("): return try list(depth: depth)
        case .symbol("-"), .symbol("+"): return try signed()
        case .word(let name):
            guard let value = try keyword(name, depth) else { throw unexpected("a value") }
            return value
        default: throw unexpected("an attribute or a value")
        }
        try advance()
        return result
    }

    private mutating func keyword(_ name: String, _ depth: Int) throws(PredicateError) -> QueryValue? {
        let result: QueryValue
        switch name.uppercased() {
        case "TRUE", "YES": result = .truth(true)
        case "FALSE", "NO": result = .truth(false)
        case "NIL", "NULL": result = .null
        case "CAST": return try cast(depth)
        default: return nil
        }
        try advance()
        return result
    }

    private mutating func signed() throws(PredicateError) -> QueryValue {
        let isNegative = token == .symbol("-")
        try advance()
        let result: QueryValue
        switch token {
        case .integer(let number): result = .integer(isNegative ? -number : number)
        case .real(let number): result = .real(isNegative ? -number : number)
        default: throw unexpected("a number")
        }
        try advance()
        return result
    }

    private mutating func list(depth: Int) throws(PredicateError) -> QueryValue {
        guard depth == 0 else { throw problem("a list within a list is not known") }
        let end = token == .symbol("{") ? "}" : ")"
        try advance()
        var elements: [QueryValue] = []
        if try take(symbol: end) { return .list([]) }
        repeat { elements.append(try value(depth: depth + 1)) } while try take(symbol: ",")
        try expect(end)
        return .list(elements)
    }

    /// `CAST("2024-02-29T12:00:00Z", "NSDate")`; a number is seconds since 2001, as there.
    private mutating func cast(_ depth: Int) throws(PredicateError) -> QueryValue {
        try advance()
        try expect("(")
        let value = try value(depth: depth + 1)
        try expect(",")
        guard token == .text("NSDate") else { throw unexpected("\"NSDate\"") }
        try advance()
        try expect(")")
        return try settled(value, for: .time)
    }

    /// `$time.iso(2024-02-29T12:00:00Z)`, as Spotlight writes it; here the date stands in quotes.
    private mutating func time(_ name: String) throws(PredicateError) -> QueryValue {
        guard name == "time.iso" else { throw problem("'$\(name)' is not known; write $time.iso(\"2024-02-29\")") }
        try advance()
        try expect("(")
        guard case .text(let text) = token else { throw unexpected("a date in quotes") }
        try advance()
        try expect(")")
        return try settled(.text(text), for: .time)
    }
}

// MARK: - Types

extension PredicateParser {
    /// Turns literals into what the key on the other side is, and refuses what could never be compared.
    private func settle(_ comparison: inout Comparison) throws(PredicateError) {
        if case .key(let key) = comparison.left, case .value(let value) = comparison.right {
            comparison.right = .value(try settled(value, for: key.kind))
        } else if case .value(let value) = comparison.left, case .key(let key) = comparison.right {
            comparison.left = .value(try settled(value, for: key.kind))
        }
        switch comparison.relation {
        case .like, .matches:
            guard case .value(.text(let text)) = comparison.right else { throw problem("LIKE and MATCHES need a text") }
            comparison.pattern =
                comparison.relation == .like
                ? try TextPattern(like: text, folding: comparison.folding)
                : try TextPattern(matching: text, folding: comparison.folding)
        case .between:
            guard case .value(.list(let bounds)) = comparison.right, bounds.count == 2 else {
                throw problem("BETWEEN needs a list of two, as in BETWEEN {1, 10}")
            }
        case .isIn:
            if case .value(let value) = comparison.right {
                switch value {
                case .list, .text: break
                default: throw problem("IN needs a list, as in IN {\"a\", \"b\"}")
                }
            }
        case .contains, .beginsWith, .endsWith:
            if case .key(let key) = comparison.left, key.kind != .text, key.kind != .texts {
                throw problem("'\(key.rawValue)' is no text")
            }
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual: break
        }
    }

    private func settled(_ value: QueryValue, for kind: AttributeKey.Kind) throws(PredicateError) -> QueryValue {
        switch (kind, value) {
        case (_, .null): return .null
        case (_, .list(let elements)):
            var result: [QueryValue] = []
            for element in elements { result.append(try settled(element, for: kind)) }
            return .list(result)
        case (.text, .text), (.texts, .text), (.time, .time), (.number, .integer), (.number, .real), (.truth, .truth):
            return value
        case (.truth, .integer(let number)) where number == 0 || number == 1: return .truth(number == 1)
        case (.number, .truth(let truth)): return .integer(truth ? 1 : 0)
        case (.time, .text(let text)):
            guard let time = DateLiteral.nanoseconds(text) else {
                throw problem("'\(String(decoding: text, as: UTF8.self))' is no date as ISO 8601 writes it, 2024-02-29T12:00:00Z")
            }
            return .time(time)
        case (.time, .integer(let seconds)): return try time(sinceReference: Double(seconds))
        case (.time, .real(let seconds)): return try time(sinceReference: seconds)
        case (.text, _), (.texts, _): throw problem("a text is compared with a text in quotes")
        case (.number, _): throw problem("a number is compared with a number")
        case (.truth, _): throw problem("a truth value is compared with TRUE or FALSE")
        case (.time, _): throw problem("a date is compared with a date, as \"2024-02-29T12:00:00Z\"")
        }
    }

    /// NSDate counts seconds from 2001-01-01 00:00 UTC.
    private func time(sinceReference seconds: Double) throws(PredicateError) -> QueryValue {
        guard abs(seconds) < 8e9 else { throw problem("a date is out of range") }
        let whole = Int64(seconds)
        return .time((978_307_200 + whole) * 1_000_000_000 + Int64((seconds - Double(whole)) * 1e9))
    }
}
