import PromiseCore

/// Percent-encoding of URLs (RFC 3986, section 2): everything but unreserved characters is encoded.
package enum PercentEncoding {
    package static func encoded(_ bytes: [UInt8]) -> String {
        if bytes.allSatisfy(isUnreserved) { return String(decoding: bytes, as: UTF8.self) }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for byte in bytes {
            if isUnreserved(byte) {
                result.append(byte)
            } else {
                result.append(UInt8(ascii: "%"))
                result += hexadecimal(byte).uppercased().utf8
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Nil when a `%` is not followed by two digits.
    package static func decoded(_ text: some StringProtocol) -> [UInt8]? {
        let encoded = Array(String(text).utf8)
        guard encoded.contains(UInt8(ascii: "%")) else { return encoded }
        var result: [UInt8] = []
        result.reserveCapacity(encoded.count)
        var bytes = encoded.makeIterator()
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = bytes.next().flatMap(value), let low = bytes.next().flatMap(value) else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }

    /// Of digits alone, two for each byte; nil when they are none.
    package static func decoded(hexadecimal digits: some StringProtocol) -> [UInt8]? {
        var result: [UInt8] = []
        var bytes = digits.utf8.makeIterator()
        while let first = bytes.next() {
            guard let high = value(first), let low = bytes.next().flatMap(value) else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
