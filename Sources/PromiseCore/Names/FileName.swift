// Names are bytes. Linux holds `é` composed and decomposed as two files, and names that are no UTF-8 at all;
// `String` would merge the first two and destroy the third.

/// The name of an entry in a folder: 1 to 255 bytes, no `/`, no NUL, not `.` or `..`. Compared bytewise.
package struct FileName: Hashable, Comparable, Sendable {
    package static let byteCountMax = 255

    package let bytes: [UInt8]

    /// Returns nil when the bytes are not a legal Linux file name.
    package init?(_ bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, bytes.count <= FileName.byteCountMax else { return nil }
        let copy = Array(bytes)
        guard !copy.contains(0x2F), !copy.contains(0) else { return nil }
        if copy == [0x2E] || copy == [0x2E, 0x2E] { return nil }
        self.bytes = copy
    }

    package init?(_ text: String) { self.init(Array(text.utf8)) }

    /// Skips validation, for bytes that the kernel or the index has validated already.
    package init(trusted bytes: [UInt8]) { self.bytes = bytes }

    package static func < (left: FileName, right: FileName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// For people only: what is not UTF-8 is shown as `\xNN`, control characters as `\n` or `\xNN`.
    package var display: String { escapedForDisplay(bytes) }
}

extension FileName: CustomStringConvertible {
    package var description: String { display }
}

/// Shows bytes to people: legal UTF-8 as it is, everything else and control characters escaped.
package func escapedForDisplay(_ bytes: some Collection<UInt8>) -> String {
    var result = ""
    var rest = Array(bytes)[...]
    while let first = rest.first {
        let length = utf8SequenceLength(rest)
        if length > 1 {
            // The bytes were checked just now, so decoding repairs nothing.
            result += String(decoding: rest.prefix(length), as: UTF8.self)
        } else if length == 1, first >= 0x20, first != 0x7F {
            result.unicodeScalars.append(Unicode.Scalar(first))
        } else if first == 0x0A {
            result += "\\n"
        } else {
            result += "\\x" + hexadecimal(first)
        }
        rest = rest.dropFirst(Swift.max(length, 1))
    }
    return result
}

/// The length of the well-formed UTF-8 sequence at the start of `bytes`, or 0.
private func utf8SequenceLength(_ bytes: ArraySlice<UInt8>) -> Int {
    guard let first = bytes.first else { return 0 }
    let length: Int
    switch first {
    case 0x00...0x7F: return 1
    case 0xC2...0xDF: length = 2
    case 0xE0...0xEF: length = 3
    case 0xF0...0xF4: length = 4
    default: return 0
    }
    guard bytes.count >= length else { return 0 }
    return String(validating: bytes.prefix(length), as: UTF8.self) == nil ? 0 : length
}

/// Two lower-case hexadecimal digits.
package func hexadecimal(_ byte: UInt8) -> String {
    func digit(_ value: UInt8) -> Unicode.Scalar { Unicode.Scalar(value < 10 ? 0x30 + value : 0x57 + value) }
    var text = ""
    text.unicodeScalars.append(digit(byte >> 4))
    text.unicodeScalars.append(digit(byte & 15))
    return text
}
