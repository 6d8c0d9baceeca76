// The decomposition and folding tables of Swift's own strings: the only ones outside Foundation.
@_spi(_Unicode) import Swift

/// What a comparison of texts overlooks: `[c]` case, `[d]` accents.
package struct TextFolding: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let ignoresCase = TextFolding(rawValue: 1)
    package static let ignoresDiacritics = TextFolding(rawValue: 2)

    /// Two texts that differ only in what is overlooked give the same bytes. Case is folded in full (Unicode, CaseFolding.txt,
    /// C and F), scalar by scalar: so what is folded of a part of a text is a part of what is folded of the whole. What is no
    /// accent stays one character with what it is written of: a syllable of Hangul has no other syllable in it.
    package func fold(_ text: [UInt8]) -> [UInt8] {
        if isEmpty { return text }
        if text.allSatisfy({ $0 < 0x80 }) {
            return contains(.ignoresCase) ? text.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 } : text
        }
        var string = String(decoding: text, as: UTF8.self)
        if contains(.ignoresDiacritics) {
            let bare = string._nfd.filter { $0.properties.generalCategory != .nonspacingMark }
            string = TextFolding.composed(String.UnicodeScalarView(bare))
        }
        guard contains(.ignoresCase) else { return Array(string.utf8) }
        return Array(string.unicodeScalars.map { $0.properties._caseFolded }.joined().utf8)
    }

    /// A pattern whose characters are to be folded one by one: what folding a text makes one character is one here.
    func prepared(_ pattern: String) -> String {
        guard contains(.ignoresDiacritics), !pattern.utf8.allSatisfy({ $0 < 0x80 }) else { return pattern }
        var (result, part) = (String.UnicodeScalarView(), String.UnicodeScalarView())
        func endPart() {
            result.append(contentsOf: TextFolding.composed(part).unicodeScalars)
            part = String.UnicodeScalarView()
        }
        for scalar in pattern.unicodeScalars {
            guard scalar.isASCII else {
                part.append(scalar)
                continue
            }
            // It may be a sign of the pattern: an accent behind it is none of its own.
            endPart()
            result.append(scalar)
        }
        endPart()
        return String(result)
    }

    private static func composed(_ scalars: String.UnicodeScalarView) -> String {
        String(String.UnicodeScalarView(String(scalars)._nfc))
    }

    /// What one character becomes: none, one or several.
    func fold(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        Array(String(decoding: fold(Array(String(scalar).utf8)), as: UTF8.self).unicodeScalars)
    }

    /// The characters that become one other character. Ideographs and syllables of Hangul have no case, and are many.
    var replacements: [(from: UInt32, to: UInt32)] {
        switch self {
        case .ignoresCase: TextFolding.caseReplacements
        case .ignoresDiacritics: TextFolding.accentReplacements
        case []: []
        default: TextFolding.bothReplacements
        }
    }

    private static let caseReplacements = listed(.ignoresCase)
    private static let accentReplacements = listed(.ignoresDiacritics)
    private static let bothReplacements = listed([.ignoresCase, .ignoresDiacritics])

    private static func listed(_ folding: TextFolding) -> [(from: UInt32, to: UInt32)] {
        var result: [(from: UInt32, to: UInt32)] = []
        for range: ClosedRange<UInt32> in [0x41...0x5A, 0x80...0x33FF, 0xA640...0xABFF, 0xF900...0x1FFFF, 0x2F800...0x2FA1F] {
            for value in range {
                guard let scalar = Unicode.Scalar(value) else { continue }
                let folded = folding.fold(scalar)
                if folded.count == 1, folded[0] != scalar { result.append((value, folded[0].value)) }
            }
        }
        return result
    }
}
