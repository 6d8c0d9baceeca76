/// Reads the part of ICU's regular expressions that needs no memory of what was matched: literals, `.`, `[…]`, `\d \w \s`
/// and their opposites, groups, `|`, `* + ? {m,n}`, `^` and `$`. Anything else is an error, not something different.
struct RegularExpressionParser {
    private static let depthMax = 50
    private static let repetitionMax = 1_000

    private let scalars: [Unicode.Scalar]
    private let folding: TextFolding
    private var position = 0

    init(_ pattern: String, _ folding: TextFolding) {
        scalars = Array(pattern.unicodeScalars)
        self.folding = folding
    }

    mutating func parse() throws(PredicateError) -> RegularExpression.Node {
        let node = try alternatives(depth: 0)
        guard position == scalars.count else { throw problem("a ')' has no '('") }
        return node
    }

    private func problem(_ text: String) -> PredicateError {
        PredicateError(message: "the pattern is not understood: \(text)", position: position)
    }

    private var current: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard current == scalar else { return false }
        position += 1
        return true
    }

    private mutating func alternatives(depth: Int) throws(PredicateError) -> RegularExpression.Node {
        guard depth < RegularExpressionParser.depthMax else { throw problem("groups are nested too deeply") }
        var result = [try sequence(depth: depth)]
        while take("|") { result.append(try sequence(depth: depth)) }
        return result.count == 1 ? result[0] : .alternatives(result)
    }

    private mutating func sequence(depth: Int) throws(PredicateError) -> RegularExpression.Node {
        var nodes: [RegularExpression.Node] = []
        while let scalar = current, scalar != "|", scalar != ")" {
            nodes.append(try repeated(try atom(depth: depth)))
        }
        return .sequence(nodes)
    }

    private mutating func repeated(_ node: RegularExpression.Node) throws(PredicateError) -> RegularExpression.Node {
        let result: RegularExpression.Node
        if take("*") {
            result = .star(node)
        } else if take("+") {
            result = .repetition(node, 1, nil)
        } else if take("?") {
            result = .repetition(node, 0, 1)
        } else if take("{") {
            result = try counted(node)
        } else {
            return node
        }
        // Lazy and greedy find the same where the whole text has to match.
        _ = take("?")
        if let scalar = current, "*+{".unicodeScalars.contains(scalar) { throw problem("a repetition is repeated") }
        return result
    }

    private mutating func counted(_ node: RegularExpression.Node) throws(PredicateError) -> RegularExpression.Node {
        guard let least = number() else { throw problem("'{' needs a number") }
        var most: Int? = least
        if take(",") { most = number() }
        guard take("}") else { throw problem("'{' has no '}'") }
        guard max(least, most ?? 0) <= RegularExpressionParser.repetitionMax, most.map({ $0 >= least }) ?? true else {
            throw problem("a repetition is out of range")
        }
        return .repetition(node, least, most)
    }

    private mutating func number() -> Int? {
        var value: Int?
        while let scalar = current, let digit = Int(String(scalar)), scalar.isASCII {
            value = min((value ?? 0) * 10 + digit, 1_000_000)
            position += 1
        }
        return value
    }

    private mutating func atom(depth: Int) throws(PredicateError) -> RegularExpression.Node {
        guard let scalar = current else { throw problem("it ends too early") }
        position += 1
        switch scalar {
        case ".": return .any
        case "^": return .start
        case "$": return .end
        case "(":
            if take("?"), !take(":") { throw problem("only '(?:' of the groups with '?' is known") }
            let node = try alternatives(depth: depth + 1)
            guard take(")") else { throw problem("a '(' has no ')'") }
            return node
        case "[": return try characterClass()
        case "\\":
            if let known = escapedClass() { return .oneOf(known) }
            return literal(try escaped())
        case "*", "+", "?", "{": throw problem("there is nothing to repeat")
        default: return literal(scalar)
        }
    }

    /// One character may fold to several.
    private func literal(_ scalar: Unicode.Scalar) -> RegularExpression.Node {
        .sequence(folding.fold(scalar).map { .scalar($0) })
    }

    // MARK: Characters

    private mutating func escaped() throws(PredicateError) -> Unicode.Scalar {
        guard let scalar = current else { throw problem("it ends with '\\'") }
        position += 1
        switch scalar {
        case "n": return "\n"
        case "t": return "\t"
        case "r": return "\r"
        default:
            if scalar.properties.isAlphabetic || scalar.isASCII && scalar.properties.numericType != nil {
                throw problem("'\\\(scalar)' is not known")
            }
            return scalar
        }
    }

    private mutating func escapedClass() -> ScalarClass? {
        guard let scalar = current else { return nil }
        let known: ScalarClass
        switch scalar {
        case "d": known = ScalarClass(kinds: [.digit])
        case "D": known = ScalarClass(kinds: [.digit], isNegated: true)
        case "s": known = ScalarClass(kinds: [.space])
        case "S": known = ScalarClass(kinds: [.space], isNegated: true)
        case "w": known = ScalarClass(kinds: [.word])
        case "W": known = ScalarClass(kinds: [.word], isNegated: true)
        default: return nil
        }
        position += 1
        return known
    }

    private mutating func characterClass() throws(PredicateError) -> RegularExpression.Node {
        var members = ScalarClass()
        members.isNegated = take("^")
        // Members that become several characters.
        var sequences: [RegularExpression.Node] = []
        var isFirst = true
        while true {
            guard let scalar = current else { throw problem("a '[' has no ']'") }
            position += 1
            if scalar == "]", !isFirst { break }
            isFirst = false
            if scalar == "[" { throw problem("a class within a class is not known") }
            if scalar == "\\", let known = escapedClass() {
                guard !known.isNegated else { throw problem("an opposite class within a class is not known") }
                members.kinds.formUnion(known.kinds)
                continue
            }
            let lower = scalar == "\\" ? try escaped() : scalar
            guard current == "-", position + 1 < scalars.count, scalars[position + 1] != "]" else {
                members.ranges.append(lower.value...lower.value)
                let folded = folding.fold(lower)
                if folded.count > 1 { sequences.append(.sequence(folded.map { .scalar($0) })) }
                continue
            }
            position += 1
            var upper = scalars[position]
            position += 1
            if upper == "\\" { upper = try escaped() }
            guard lower.value <= upper.value else { throw problem("a range of a class is empty") }
            members.ranges.append(lower.value...upper.value)
        }
        members.fold(folding)
        if members.isNegated || sequences.isEmpty { return .oneOf(members) }
        return .alternatives([.oneOf(members)] + sequences)
    }
}
