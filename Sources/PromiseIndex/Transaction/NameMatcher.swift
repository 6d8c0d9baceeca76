import PromiseCore
import PromiseQuery

/// Whether a name contains a text, without regard to case, as the index of names sees it: folded as `[c]` of a predicate folds,
/// no normalisation. Compares what people are shown (`FileName.display`).
struct NameMatcher {
    private let text: [UInt8]

    init(_ text: String) { self.text = TextFolding.ignoresCase.fold(Array(text.utf8)) }

    /// What `name_may_contain` is asked for.
    var bytes: [UInt8] { text }

    /// What the index is asked for.
    var folded: String { String(decoding: text, as: UTF8.self) }

    /// The trigram tokenizer sees nothing in fewer than three scalars.
    var isIndexable: Bool { folded.unicodeScalars.count >= 3 }

    /// A name as it stands in the index.
    static func indexed(_ name: FileName) -> String {
        String(decoding: TextFolding.ignoresCase.fold(Array(name.display.utf8)), as: UTF8.self)
    }

    /// As a string of the index's query language (sqlite.org/fts5.html, 3.1). By scalars: a quotation mark with an accent on it
    /// is one character, and none of Swift's quotation marks.
    static func phrase(_ text: String) -> String {
        var result = "\"".unicodeScalars
        for scalar in text.unicodeScalars {
            result.append(scalar)
            if scalar == "\"" { result.append(scalar) }
        }
        result.append("\"")
        return String(result)
    }

    func matches(_ name: UnsafeRawBufferPointer) -> Bool {
        if name.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
            // A name of plain ASCII is displayed as it is.
            return contains(name) { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }
        }
        return contains(TextFolding.ignoresCase.fold(Array(escapedForDisplay(name).utf8))) { $0 }
    }

    func matches(_ name: FileName) -> Bool { name.bytes.withUnsafeBytes { matches($0) } }

    private func contains<Name: RandomAccessCollection>(_ name: Name, _ fold: (UInt8) -> UInt8) -> Bool
    where Name.Element == UInt8, Name.Index == Int {
        guard text.count <= name.count else { return false }
        for start in name.startIndex...(name.endIndex - text.count) {
            var offset = 0
            while offset < text.count, fold(name[start + offset]) == text[offset] { offset += 1 }
            if offset == text.count { return true }
        }
        return false
    }
}
