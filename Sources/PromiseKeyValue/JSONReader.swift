/// Reads one JSON document, of whoever wrote it: nil for anything that is none.
package struct JSONReader {
    /// Of what is in what: reading is recursive, and a stranger's text must not use up the stack.
    package static let depthMax = 128

    private let bytes: [UInt8]
    private var index = 0

    package static func read(_ bytes: [UInt8]) -> JSON? {
        var reader = JSONReader(bytes: bytes)
        guard let value = reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        return reader.index == bytes.count ? value : nil
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard index + count <= bytes.count else { return false }
        let isThere = word.withUTF8Buffer { bytes[index..<index + count].elementsEqual($0) }
        if isThere { index += count }
        return isThere
    }

    private mutating func value(depth: Int) -> JSON? {
        guard depth < JSONReader.depthMax else { return nil }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return map(depth: depth)
        case UInt8(ascii: "["): return list(depth: depth)
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return number()
        }
    }

    private mutating func map(depth: Int) -> JSON? {
        index += 1
        var fields: [Key: JSON] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .map(fields) }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\""), let name = string() else { return nil }
            skipSpace()
            guard take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else { return nil }
            // Readers differ in which of two they take.
            guard fields.updateValue(value, forKey: Key(name)) == nil else { return nil }
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .map(fields) : nil
    }

    private mutating func list(depth: Int) -> JSON? {
        index += 1
        var list: [JSON] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .list(list) }
        repeat {
            guard let value = value(depth: depth + 1) else { return nil }
            list.append(value)
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .list(list) : nil
    }

    private mutating func number() -> JSON? {
        let start = index
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")), !digits() { return nil }
        if take(UInt8(ascii: ".")), !digits() { return nil }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() else { return nil }
        }
        return .number(String(decoding: bytes[start..<index], as: UTF8.self))
    }

    private mutating func digits() -> Bool {
        let start = index
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        return index > start
    }

    private mutating func string() -> String? {
        index += 1
        var content: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escaped() else { return nil }
                content += Array(String(Character(scalar)).utf8)
            case ..<0x20: return nil
            default: content.append(byte)
            }
        }
        return nil
    }

    private mutating func escaped() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let first = unit() else { return nil }
            guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")), let second = unit(),
                (0xDC00..<0xE000).contains(second)
            else { return nil }
            return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        default: return nil
        }
    }

    /// Four hexadecimal digits.
    private mutating func unit() -> UInt32? {
        guard index + 4 <= bytes.count else { return nil }
        var result: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            result = result << 4 | UInt32(digit)
        }
        index += 4
        return result
    }
}
