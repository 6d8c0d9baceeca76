// The decomposition tables of Swift's own strings: the only ones outside Foundation.
@_spi(_Unicode) import Swift

/// What a comparison of texts overlooks: `[c]` case, `[d]` accents.
package struct TextFolding: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let ignoresCase = TextFolding(rawValue: 1)
    package static let ignoresDiacritics = TextFolding(rawValue: 2)

    /// Two texts that differ only in what is overlooked give the same bytes.
    package func fold(_ text: [UInt8]) -> [UInt8] {
        if isEmpty { return text }
        if text.allSatisfy({ $0 < 0x80 }) {
            return contains(.ignoresCase) ? text.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 } : text
        }
        var string = String(decoding: text, as: UTF8.self)
        if contains(.ignoresDiacritics) {
            string = String(String.UnicodeScalarView(string._nfd.filter { $0.properties.generalCategory != .nonspacingMark }))
        }
        guard contains(.ignoresCase) else { return Array(string.utf8) }
        return Array(string.unicodeScalars.map { $0.properties.lowercaseMapping }.joined().utf8)
    }
}
