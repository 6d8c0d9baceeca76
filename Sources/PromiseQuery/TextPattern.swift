/// What `LIKE` and `MATCHES` look for. Matching takes time in proportion to pattern times text, whatever they are.
package struct TextPattern: Sendable {
    private let program: RegularExpression

    /// `?` is any one character, `*` any number of them; `\` takes the special meaning away.
    package init(like pattern: [UInt8], folding: TextFolding) throws(PredicateError) {
        var nodes: [RegularExpression.Node] = []
        // Folded only when it is known what is meant: a `\` may stand before what folding leaves out.
        var literal = String.UnicodeScalarView()
        func endLiteral() {
            let folded = folding.fold(Array(String(literal).utf8))
            nodes += String(decoding: folded, as: UTF8.self).unicodeScalars.map { .scalar($0) }
            literal = String.UnicodeScalarView()
        }
        var isEscaped = false
        for scalar in String(decoding: pattern, as: UTF8.self).unicodeScalars {
            if !isEscaped, scalar == "\\" {
                isEscaped = true
                continue
            }
            if !isEscaped, scalar == "*" || scalar == "?" {
                endLiteral()
                nodes.append(scalar == "*" ? .star(.any) : .any)
            } else {
                literal.append(scalar)
            }
            isEscaped = false
        }
        if isEscaped { literal.append("\\") }
        endLiteral()
        program = try RegularExpression(.sequence(nodes))
    }

    /// A regular expression that the whole text has to match: see `RegularExpressionParser`.
    package init(matching pattern: [UInt8], folding: TextFolding) throws(PredicateError) {
        let text = folding.prepared(String(decoding: pattern, as: UTF8.self))
        var parser = RegularExpressionParser(text, folding)
        program = try RegularExpression(try parser.parse())
    }

    /// Steps for each character.
    var weight: Int { program.instructionCount }

    /// `text` has been folded already.
    func matches(_ text: [UInt8]) -> Bool { program.matches(text) }

    /// Whether `part` is somewhere in `whole`.
    static func contains(_ whole: [UInt8], _ part: [UInt8]) -> Bool {
        guard let first = part.first else { return true }
        guard whole.count >= part.count else { return false }
        for start in 0...(whole.count - part.count) where whole[start] == first {
            var offset = 1
            while offset < part.count, whole[start + offset] == part[offset] { offset += 1 }
            if offset == part.count { return true }
        }
        return false
    }
}
