/// Bytes as text (RFC 4648, section 4).
package enum Base64 {
    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func text(_ bytes: [UInt8]) -> String {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var group: UInt32 = 0
            for offset in 0..<3 {
                group = group << 8 | (offset < count ? UInt32(bytes[start + offset]) : 0)
            }
            for place in 0..<4 {
                let letter = letters[Int(group >> UInt32(18 - 6 * place) & 63)]
                result.append(place <= count ? letter : UInt8(ascii: "="))
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Without padding, for URLs and one word of a command line (RFC 4648, section 5).
    package static func urlText(_ bytes: [UInt8]) -> String {
        let letters = text(bytes).utf8.prefix { $0 != UInt8(ascii: "=") }.map { byte in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return String(decoding: letters, as: UTF8.self)
    }

    package static func bytes(url text: String) -> [UInt8]? {
        guard !text.utf8.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var letters = text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        while letters.count % 4 != 0 { letters.append(UInt8(ascii: "=")) }
        return bytes(String(decoding: letters, as: UTF8.self))
    }

    /// Nil for what no encoder would have written.
    package static func bytes(_ text: String) -> [UInt8]? {
        var (result, group, bits): ([UInt8], UInt32, Int) = ([], 0, 0)
        let padded = Array(text.utf8)
        guard padded.count % 4 == 0 else { return nil }
        var content = padded[...]
        for _ in 0..<2 where content.last == UInt8(ascii: "=") { content.removeLast() }
        for byte in content {
            guard let number = value(of: byte) else { return nil }
            group = group << 6 | number
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= 1 << UInt32(bits) - 1
            }
        }
        return group == 0 && bits < 6 ? result : nil
    }

    private static func value(of byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
