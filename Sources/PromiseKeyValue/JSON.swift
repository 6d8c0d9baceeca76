/// JSON (RFC 8259) as a tree. Numbers stay as they are written, so that a field that is not
/// understood goes back unchanged.
package enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case list([JSON])
    case map([Key: JSON])

    package subscript(_ key: Key) -> JSON? {
        if case .map(let fields) = self { fields[key] } else { nil }
    }

    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    package var fields: [Key: JSON]? { if case .map(let fields) = self { fields } else { nil } }

    package func integer<Integer: FixedWidthInteger>(_: Integer.Type) -> Integer? {
        if case .number(let text) = self { Integer(text) } else { nil }
    }

    // MARK: Writing

    /// The same bytes for the same tree, whoever writes it: fields are sorted.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return bytes
    }

    private func write(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let bool): bytes += (bool ? "true" : "false").utf8
        case .number(let text): bytes += text.utf8
        case .string(let text): JSON.write(text, into: &bytes)
        case .list(let list):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in list.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .map(let fields):
            bytes.append(UInt8(ascii: "{"))
            for (index, field) in fields.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSON.write(field.key.text, into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                field.value.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, into bytes: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case ..<0x20:
                bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
