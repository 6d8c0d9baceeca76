import Foundation
package import PromiseCore

/// Names as a storage that takes only some keeps them. A URL carries UTF-8, servers as well as HTTP libraries take nothing else,
/// and the file systems of memory sticks neither, so a byte of a name that is no UTF-8 is kept as `‛FF`, the convention of
/// rclone's encoder. Where a name looks like such an escape it is escaped itself, so every name has exactly one stored form and
/// comes back as it was. What else a storage cannot keep is escaped alike.
package enum StoredName {
    /// U+201B, which rclone puts before the two digits.
    private static let mark: [UInt8] = [0xE2, 0x80, 0x9B]

    /// Well-formed UTF-8, without what `escapes` says that the storage cannot keep.
    package static func encoded(_ name: [UInt8], _ escapes: NameEscapes = []) -> [UInt8] {
        if isPlain(name), !escapes.concern(name) { return name }
        let hasOnlyASCII = isInLostForm(name, escapes)
        var result: [UInt8] = []
        result.reserveCapacity(name.count)
        var rest = name[...]
        while let first = rest.first {
            if first < 0x80 {
                let isEscaped = escapes.concerns(first, isFirst: rest.count == name.count, isLast: rest.count == 1)
                if isEscaped { result += escape(first) } else { result.append(first) }
                rest = rest.dropFirst()
                continue
            }
            let length = sequenceLength(rest)
            if length > 0, !hasOnlyASCII, escapedByte(rest, escapes) == nil {
                result += rest.prefix(length)
                rest = rest.dropFirst(length)
            } else {
                let count = max(length, 1)
                for byte in rest.prefix(count) { result += escape(byte) }
                rest = rest.dropFirst(count)
            }
        }
        return result
    }

    /// The form of a name whose plain one leads to another item, on a storage that takes upper and lower case for one (`.cases`).
    /// Of any names, no two of these forms, nor one of them and another's plain one, differ in case only.
    package static func caseTwin(of name: [UInt8], _ escapes: NameEscapes) -> [UInt8] {
        let twin = caseTwin(of: name, escapes, withFirstLetter: false)
        // What is in lower case altogether can be the second, too; then its first letter tells.
        return twin == encoded(name, escapes) ? caseTwin(of: name, escapes, withFirstLetter: true) : twin
    }

    private static func caseTwin(of name: [UInt8], _ escapes: NameEscapes, withFirstLetter: Bool) -> [UInt8] {
        var isLetterDue = withFirstLetter
        var result: [UInt8] = []
        for (index, byte) in name.enumerated() {
            let isFirstLetter = isLetterDue && isLetter(byte)
            if isFirstLetter { isLetterDue = false }
            let isConcerned = escapes.concerns(byte, isFirst: index == 0, isLast: index == name.count - 1)
            let isEscaped = byte >= 0x80 || isUpperCase(byte) || isFirstLetter || isConcerned
            if isEscaped { result += escape(byte) } else { result.append(byte) }
        }
        return result
    }

    private static func isUpperCase(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") }
    private static func isLetter(_ byte: UInt8) -> Bool { isUpperCase(byte & 0xDF) && byte < 0x80 }

    /// A form of Unicode that the storage does not keep.
    private static func isInLostForm(_ name: [UInt8], _ escapes: NameEscapes) -> Bool {
        guard !escapes.isDisjoint(with: [.composed, .decomposed]), !isPlain(name) else { return false }
        let text = String(decoding: encoded(name), as: UTF8.self)
        func isLost(_ form: NameEscapes, _ kept: String) -> Bool {
            escapes.contains(form) && !kept.utf8.elementsEqual(text.utf8)
        }
        return isLost(.decomposed, text.precomposedStringWithCanonicalMapping)
            || isLost(.composed, text.decomposedStringWithCanonicalMapping)
    }

    /// Nil for what `encoded` makes of no name: a stored name that is no UTF-8, or one that would be another's.
    package static func decoded(_ stored: [UInt8], _ escapes: NameEscapes = []) -> FileName? {
        if isPlain(stored) { return escapes.concern(stored) ? nil : FileName(stored) }
        var name: [UInt8] = []
        name.reserveCapacity(stored.count)
        var rest = stored[...]
        while let first = rest.first {
            if let byte = escapedByte(rest, escapes) {
                name.append(byte)
                rest = rest.dropFirst(mark.count + 2)
            } else {
                name.append(first)
                rest = rest.dropFirst()
            }
        }
        let isTwin = escapes.contains(.cases) && caseTwin(of: name, escapes) == stored
        guard isTwin || encoded(name, escapes) == stored else { return nil }
        return FileName(name)
    }

    /// Whether a stored name may stand for another one.
    package static func hasMark(_ stored: [UInt8]) -> Bool {
        stored.indices.contains { stored[$0...].starts(with: mark) }
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        mark + Array(hexadecimal(byte).uppercased().utf8)
    }

    /// Of nothing that is escaped everywhere; a listing has many names.
    private static func isPlain(_ name: [UInt8]) -> Bool { name.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }

    /// The byte that an escape at the start stands for, of those that may be escaped.
    private static func escapedByte(_ bytes: ArraySlice<UInt8>, _ escapes: NameEscapes) -> UInt8? {
        guard bytes.starts(with: mark), bytes.count >= mark.count + 2 else { return nil }
        let digits = bytes.dropFirst(mark.count).prefix(2).map { digit($0) }
        guard let high = digits[0], let low = digits[1] else { return nil }
        let byte = high << 4 | low
        if byte >= 0x80 || escapes.concerns(byte, isFirst: true, isLast: true) { return byte }
        return escapes.contains(.cases) && isLetter(byte) ? byte : nil
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private static func sequenceLength(_ bytes: ArraySlice<UInt8>) -> Int {
        let length =
            switch bytes.first ?? 0 {
            case 0x00...0x7F: 1
            case 0xC2...0xDF: 2
            case 0xE0...0xEF: 3
            case 0xF0...0xF4: 4
            default: 0
            }
        guard length > 0, bytes.count >= length else { return 0 }
        return String(validating: bytes.prefix(length), as: UTF8.self) == nil ? 0 : length
    }
}
