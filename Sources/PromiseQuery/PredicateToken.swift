/// A word of the predicate format.
enum PredicateToken: Hashable {
    /// A key or a keyword; keywords are told apart by the parser, in any case of letters.
    case word(String)
    /// Written with `#` before it: never a keyword.
    case quotedWord(String)
    case text(String)
    case integer(Int64)
    case real(Double)
    /// `%@`, `%d` and the like.
    case argument
    /// `%K`.
    case keyArgument
    /// `$time` and other variables.
    case variable(String)
    /// Brackets, commas and operators.
    case symbol(String)
    case end
}

/// Cuts a predicate into tokens.
struct PredicateLexer {
    private let scalars: [Unicode.Scalar]
    private var position = 0
    /// Where the token read last begins.
    private(set) var start = 0

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    private var current: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private func problem(_ text: String) -> PredicateError { PredicateError(message: text, position: start) }

    mutating func next() throws(PredicateError) -> PredicateToken {
        while let scalar = current, scalar.properties.isWhitespace { position += 1 }
        start = position
        guard let scalar = current else { return .end }
        position += 1
        switch scalar {
        case "\"", "'": return .text(try text(until: scalar))
        case "%": return try argument()
        case "#": return .quotedWord(try word(from: position))
        case "$": return .variable(try word(from: position))
        case "0"..."9": return try number()
        default:
            if PredicateLexer.isWordStart(scalar) { return .word(try word(from: start)) }
            return .symbol(try symbol(scalar))
        }
    }

    private static func isWordStart(_ scalar: Unicode.Scalar) -> Bool { scalar == "_" || scalar.properties.isAlphabetic }

    /// A name, or several with dots between them.
    private mutating func word(from start: Int) throws(PredicateError) -> String {
        position = start
        while let scalar = current {
            let isDigit = scalar.value >= 0x30 && scalar.value <= 0x39
            guard PredicateLexer.isWordStart(scalar) || position > start && (isDigit || scalar == ".") else { break }
            position += 1
        }
        guard position > start else { throw problem("a name is missing") }
        return String(String.UnicodeScalarView(scalars[start..<position]))
    }

    private mutating func symbol(_ scalar: Unicode.Scalar) throws(PredicateError) -> String {
        if let next = current {
            let pair = String(scalar) + String(next)
            if ["==", "!=", "<>", "<=", "=<", ">=", "=>", "&&", "||"].contains(pair) {
                position += 1
                return pair
            }
        }
        guard "()[]{},=<>!-+".unicodeScalars.contains(scalar) else { throw problem("'\(scalar)' has no meaning here") }
        return String(scalar)
    }

    private mutating func argument() throws(PredicateError) -> PredicateToken {
        guard let scalar = current else { throw problem("'%' is followed by nothing") }
        position += 1
        switch scalar {
        case "@": return .argument
        case "K": return .keyArgument
        default:
            // The length modifiers of printf(3).
            var scalar = scalar
            while "lqhz".unicodeScalars.contains(scalar), let next = current {
                scalar = next
                position += 1
            }
            guard "diufgeEGs".unicodeScalars.contains(scalar) else { throw problem("'%\(scalar)' is no argument; use %@ or %K") }
            return .argument
        }
    }

    private mutating func number() throws(PredicateError) -> PredicateToken {
        while let scalar = current {
            let isExponentSign = (scalar == "+" || scalar == "-") && "eE".unicodeScalars.contains(scalars[position - 1])
            guard
                isExponentSign || scalar == "." || scalar == "_" || scalar.isASCII && scalar.properties.isASCIIHexDigit
                    || scalar == "x"
            else { break }
            position += 1
        }
        let text = String(String.UnicodeScalarView(scalars[start..<position]))
        if text.hasPrefix("0x"), let value = Int64(text.dropFirst(2), radix: 16) { return .integer(value) }
        if let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw problem("'\(text)' is no number") }
        return .real(value)
    }

    private mutating func text(until quote: Unicode.Scalar) throws(PredicateError) -> String {
        var result = String.UnicodeScalarView()
        while let scalar = current {
            position += 1
            if scalar == quote { return String(result) }
            result.append(scalar == "\\" ? try escaped() : scalar)
        }
        throw problem("a text has no closing quote")
    }

    private mutating func escaped() throws(PredicateError) -> Unicode.Scalar {
        guard let scalar = current else { throw problem("a text ends with '\\'") }
        position += 1
        switch scalar {
        case "n": return "\n"
        case "t": return "\t"
        case "r": return "\r"
        case "u", "U", "x":
            let count = scalar == "u" ? 4 : scalar == "U" ? 8 : 2
            let digits = String(String.UnicodeScalarView(scalars[position..<min(position + count, scalars.count)]))
            guard digits.count == count, let value = UInt32(digits, radix: 16), let result = Unicode.Scalar(value) else {
                throw problem("'\\\(scalar)' is followed by \(count) hexadecimal digits of a character")
            }
            position += count
            return result
        // What LIKE and MATCHES give a meaning to is escaped twice, as in NSPredicate.
        default: return scalar
        }
    }
}
