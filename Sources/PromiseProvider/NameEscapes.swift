/// What in a name a storage refuses, or changes, so that it has to be escaped there: see `StoredName`.
package struct NameEscapes: OptionSet, Codable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let controls = NameEscapes(rawValue: 1 << 0)
    package static let backslash = NameEscapes(rawValue: 1 << 1)
    /// What Windows has no names with.
    package static let reserved = NameEscapes(rawValue: 1 << 2)
    /// What has a meaning in addresses, where a server decodes those twice or not at all.
    package static let delimiters = NameEscapes(rawValue: 1 << 3)
    /// A space at either end, and a dot at the end.
    package static let ends = NameEscapes(rawValue: 1 << 4)
    /// A dot at the beginning, of what is in no listing then.
    package static let hidden = NameEscapes(rawValue: 1 << 5)
    /// All but ASCII, where a name is not in Unicode's normal form C.
    package static let decomposed = NameEscapes(rawValue: 1 << 6)
    /// All but ASCII, where a name is not in normal form D.
    package static let composed = NameEscapes(rawValue: 1 << 7)
    /// Letters of the second of two names that differ in case only: see `StoredName.caseTwin`.
    package static let cases = NameEscapes(rawValue: 1 << 8)

    /// Whether any byte of a name in ASCII is escaped.
    func concern(_ name: [UInt8]) -> Bool {
        if isEmpty { return false }
        return name.indices.contains { concerns(name[$0], isFirst: $0 == 0, isLast: $0 == name.count - 1) }
    }

    /// Whether a byte of ASCII is escaped, at the place in a name where it is.
    func concerns(_ byte: UInt8, isFirst: Bool, isLast: Bool) -> Bool {
        switch byte {
        case 0x00..<0x20, 0x7F: contains(.controls)
        case UInt8(ascii: "\\"): contains(.backslash)
        case UInt8(ascii: "?"): !isDisjoint(with: [.reserved, .delimiters])
        case UInt8(ascii: "\""), UInt8(ascii: "*"), UInt8(ascii: ":"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "|"):
            contains(.reserved)
        case UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: ";"), UInt8(ascii: "&"), UInt8(ascii: "+"), UInt8(ascii: "="),
            UInt8(ascii: "@"):
            contains(.delimiters)
        case UInt8(ascii: " "): (isFirst || isLast) && contains(.ends)
        case UInt8(ascii: "."): (isFirst && contains(.hidden)) || (isLast && contains(.ends))
        default: false
        }
    }

    /// For people: what is escaped.
    package var names: [String] {
        let all: [(NameEscapes, String)] = [
            (.controls, "control characters"), (.backslash, "\\"), (.reserved, "\" * : < > ? |"),
            (.delimiters, "# % & + ; = ? @"), (.ends, "a space at an end or a dot at the end"), (.hidden, "a dot first"),
            (.decomposed, "letters in Unicode's decomposed form"), (.composed, "letters in Unicode's composed form"),
            (.cases, "the second of two names that differ in case only"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}
