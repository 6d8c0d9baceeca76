/// What a question about a name means, told a second time without any of the product's code: the letters and what they
/// become are written down here, and patterns are matched by trying.
struct Letter {
    let scalar: Unicode.Scalar
    /// Without case; without accents; without both.
    let folded: [String]
    let isWord: Bool
    let isSpace: Bool

    init(_ text: String, _ noCase: String, _ noAccent: String, _ neither: String, word: Bool = true, space: Bool = false) {
        scalar = text.unicodeScalars.first!
        folded = [text, noCase, noAccent, neither]
        (isWord, isSpace) = (word, space)
    }

    static let all: [Letter] = [
        Letter("a", "a", "a", "a"), Letter("A", "a", "A", "a"), Letter("s", "s", "s", "s"), Letter("S", "s", "S", "s"),
        Letter("k", "k", "k", "k"), Letter("K", "k", "K", "k"), Letter("i", "i", "i", "i"), Letter("I", "i", "I", "i"),
        Letter("e", "e", "e", "e"), Letter("E", "e", "E", "e"),
        Letter("f", "f", "f", "f"), Letter("F", "f", "F", "f"), Letter("l", "l", "l", "l"), Letter("n", "n", "n", "n"),
        Letter("t", "t", "t", "t"), Letter("T", "t", "T", "t"), Letter("7", "7", "7", "7"), Letter("_", "_", "_", "_"),
        Letter(".", ".", ".", ".", word: false), Letter("-", "-", "-", "-", word: false),
        Letter("\"", "\"", "\"", "\"", word: false), Letter(" ", " ", " ", " ", word: false, space: true),
        Letter("\u{A0}", "\u{A0}", "\u{A0}", "\u{A0}", word: false, space: true),
        Letter("\u{3000}", "\u{3000}", "\u{3000}", "\u{3000}", word: false, space: true),
        Letter("\u{130}", "i\u{307}", "I", "i"), Letter("\u{131}", "\u{131}", "\u{131}", "\u{131}"),
        Letter("\u{212A}", "k", "K", "k"), Letter("\u{17F}", "s", "\u{17F}", "s"), Letter("\u{DF}", "ss", "\u{DF}", "ss"),
        Letter("\u{1E9E}", "ss", "\u{1E9E}", "ss"), Letter("\u{FB01}", "fi", "\u{FB01}", "fi"),
        Letter("\u{FB03}", "ffi", "\u{FB03}", "ffi"), Letter("\u{FB06}", "st", "\u{FB06}", "st"),
        Letter("\u{149}", "\u{2BC}n", "\u{149}", "\u{2BC}n"), Letter("\u{C5}", "\u{E5}", "A", "a"),
        Letter("\u{E5}", "\u{E5}", "a", "a"), Letter("\u{212B}", "\u{E5}", "A", "a"), Letter("\u{30A}", "\u{30A}", "", ""),
        Letter("\u{301}", "\u{301}", "", ""), Letter("\u{308}", "\u{308}", "", ""),
        Letter("\u{307}", "\u{307}", "", ""), Letter("\u{C9}", "\u{E9}", "E", "e"), Letter("\u{E9}", "\u{E9}", "e", "e"),
        Letter("\u{13A0}", "\u{13A0}", "\u{13A0}", "\u{13A0}"), Letter("\u{AB70}", "\u{13A0}", "\u{AB70}", "\u{13A0}"),
        Letter("\u{13F0}", "\u{13F0}", "\u{13F0}", "\u{13F0}"), Letter("\u{13F8}", "\u{13F0}", "\u{13F8}", "\u{13F0}"),
        Letter("\u{3A3}", "\u{3C3}", "\u{3A3}", "\u{3C3}"), Letter("\u{3C3}", "\u{3C3}", "\u{3C3}", "\u{3C3}"),
        Letter("\u{3C2}", "\u{3C3}", "\u{3C2}", "\u{3C3}"), Letter("\u{390}", "\u{3B9}\u{308}\u{301}", "\u{3B9}", "\u{3B9}"),
        Letter("\u{1FB3}", "\u{3B1}\u{3B9}", "\u{3B1}", "\u{3B1}"), Letter("\u{B5}", "\u{3BC}", "\u{B5}", "\u{3BC}"),
        Letter("\u{416}", "\u{436}", "\u{416}", "\u{436}"), Letter("\u{436}", "\u{436}", "\u{436}", "\u{436}"),
        Letter("\u{10400}", "\u{10428}", "\u{10400}", "\u{10428}"),
        Letter("\u{10428}", "\u{10428}", "\u{10428}", "\u{10428}"),
        Letter("\u{1F600}", "\u{1F600}", "\u{1F600}", "\u{1F600}", word: false),
        Letter("\u{6587}", "\u{6587}", "\u{6587}", "\u{6587}"),
    ]

    private static let byScalar = Dictionary(uniqueKeysWithValues: all.map { ($0.scalar, $0) })

    /// `folding`: 1 for case, 2 for accents. What is no letter of these stays as it is.
    static func fold(_ text: String.UnicodeScalarView, _ folding: Int) -> [Unicode.Scalar] {
        text.flatMap { scalar in byScalar[scalar].map { Array($0.folded[folding].unicodeScalars) } ?? [scalar] }
    }
}

/// A part of a regular expression, and how often it may come.
struct PatternPart {
    enum Kind { case any, word, space, members([Unicode.Scalar]), literal(Unicode.Scalar) }
    var kind: Kind
    /// Nothing, `?`, `*` or `+`.
    var repetition: String

    var isAccent: Bool {
        guard case .literal(let scalar) = kind else { return false }
        return Letter.fold(String(scalar).unicodeScalars, 2).isEmpty
    }

    var written: String {
        let text =
            switch kind {
            case .any: "."
            case .word: "\\w"
            case .space: "\\s"
            case .members(let scalars): "[" + scalars.map(escaped).joined() + "]"
            case .literal(let scalar): escaped(scalar)
            }
        return text + repetition
    }

    private func escaped(_ scalar: Unicode.Scalar) -> String {
        ".-\"".unicodeScalars.contains(scalar) ? "\\" + String(scalar) : String(scalar)
    }

    /// Where the part may end that begins at `start`, once.
    func ends(_ text: [Unicode.Scalar], _ start: Int, _ folding: Int) -> [Int] {
        func follows(_ wanted: [Unicode.Scalar]) -> [Int] {
            text.dropFirst(start).starts(with: wanted) ? [start + wanted.count] : []
        }
        func one(_ condition: (Unicode.Scalar) -> Bool) -> [Int] {
            start < text.count && condition(text[start]) ? [start + 1] : []
        }
        switch kind {
        case .any: return one { _ in true }
        case .word: return one { NameReference.isWord($0) }
        case .space: return one { scalar in Letter.all.contains { $0.scalar == scalar && $0.isSpace } }
        case .literal(let scalar): return follows(Letter.fold(String(scalar).unicodeScalars, folding))
        case .members(let scalars):
            return scalars.flatMap { scalar in
                let folded = Letter.fold(String(scalar).unicodeScalars, folding)
                return folded.isEmpty ? [] : follows(folded)
            }
        }
    }
}

enum NameReference {
    /// Letters that only foldings give are words, too.
    static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        Letter.all.first { $0.scalar == scalar }?.isWord ?? true
    }

    static func matches(_ parts: ArraySlice<PatternPart>, _ text: [Unicode.Scalar], _ start: Int, _ folding: Int) -> Bool {
        guard let part = parts.first else { return start == text.count }
        let rest = parts.dropFirst()
        let isOptional = part.repetition == "?" || part.repetition == "*"
        if isOptional, matches(rest, text, start, folding) { return true }
        let isRepeated = part.repetition == "*" || part.repetition == "+"
        for end in part.ends(text, start, folding) {
            if matches(rest, text, end, folding) { return true }
            guard isRepeated, end > start else { continue }
            var again = part
            again.repetition = "*"
            if matches([again] + rest, text, end, folding) { return true }
        }
        return false
    }

    static func isLike(_ pattern: ArraySlice<Unicode.Scalar>, _ text: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        if first == "*" { return isLike(rest, text) || !text.isEmpty && isLike(pattern, text.dropFirst()) }
        guard let next = text.first, first == "?" || first == next else { return false }
        return isLike(rest, text.dropFirst())
    }

    static func contains(_ whole: [Unicode.Scalar], _ part: [Unicode.Scalar]) -> Bool {
        part.isEmpty || whole.indices.contains { whole[$0...].starts(with: part) }
    }
}
