import PromiseCore

/// Whether a name contains a text, without regard to case, as the trigram index of FTS5 sees it: scalar by scalar, each
/// in lower case, no normalisation. Compares what people are shown (`FileName.display`).
struct NameMatcher {
    private let text: [Unicode.Scalar]
    /// The text in lower case when it is ASCII, for names that are ASCII too.
    private let ascii: [UInt8]?

    init(_ text: String) {
        self.text = text.unicodeScalars.map(NameMatcher.folded)
        ascii = text.utf8.allSatisfy { $0 < 0x80 } ? text.utf8.map(NameMatcher.folded) : nil
    }

    /// The trigram tokenizer sees nothing in fewer than three scalars.
    var isIndexable: Bool { text.count >= 3 }

    func matches(_ name: UnsafeRawBufferPointer) -> Bool {
        if name.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
            // A name of plain ASCII contains no other text, and is displayed as it is.
            return ascii.map { contains($0, in: name) { NameMatcher.folded($0) } } ?? false
        }
        return contains(text, in: Array(escapedForDisplay(name).unicodeScalars)) { NameMatcher.folded($0) }
    }

    func matches(_ name: FileName) -> Bool { name.bytes.withUnsafeBytes { matches($0) } }

    private func contains<Text: RandomAccessCollection, Element: Equatable>(
        _ wanted: [Element], in text: Text, _ fold: (Element) -> Element
    ) -> Bool where Text.Element == Element, Text.Index == Int {
        guard wanted.count <= text.count else { return false }
        for start in text.startIndex...(text.endIndex - wanted.count) {
            var offset = 0
            while offset < wanted.count, fold(text[start + offset]) == wanted[offset] { offset += 1 }
            if offset == wanted.count { return true }
        }
        return false
    }

    private static func folded(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

    /// Simple folding: a scalar stays one scalar.
    private static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar.isASCII { return Unicode.Scalar(folded(UInt8(scalar.value))) }
        let lower = scalar.properties.lowercaseMapping.unicodeScalars
        return lower.count == 1 ? lower.first! : scalar
    }
}
