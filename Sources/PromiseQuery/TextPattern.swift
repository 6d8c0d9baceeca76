/// What `LIKE` and `MATCHES` look for. Matching takes time in proportion to pattern times text, whatever they are.
package struct TextPattern: Sendable {
    private let program: RegularExpression

    /// `?` is any one character, `*` any number of them; `\` takes the special meaning away.
    package init(like pattern: [UInt8], folding: TextFolding) throws(PredicateError) {
        var nodes: [RegularExpression.Node] = []
        var isEscaped = false
        for scalar in String(decoding: folding.fold(pattern), as: UTF8.self).unicodeScalars {
            if isEscaped {
                nodes.append(.scalar(scalar))
                isEscaped = false
            } else {
                switch scalar {
                case "\\": isEscaped = true
                case "*": nodes.append(.star(.any))
                case "?": nodes.append(.any)
                default: nodes.append(.scalar(scalar))
                }
            }
        }
        if isEscaped { nodes.append(.scalar("\\")) }
        program = try RegularExpression(.sequence(nodes))
    }

    /// A regular expression that the whole text has to match: see `RegularExpressionParser`.
    package init(matching pattern: [UInt8], folding: TextFolding) throws(PredicateError) {
        var parser = RegularExpressionParser(String(decoding: pattern, as: UTF8.self), folding)
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
