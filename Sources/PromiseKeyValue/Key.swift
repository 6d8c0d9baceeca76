/// The name of a value, or of a field: UTF-8 that is compared byte by byte. (`String` takes two
/// spellings of one accented letter for the same, and two machines would not agree on which is
/// kept.)
package struct Key: Hashable, Comparable, Sendable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    package let text: String

    package init(_ text: String) { self.text = text }
    package init(stringLiteral text: String) { self.text = text }

    package var byteCount: Int { text.utf8.count }
    package var description: String { text }

    package static func == (left: Key, right: Key) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }
    package static func < (left: Key, right: Key) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(0xFF as UInt8)
    }
}
