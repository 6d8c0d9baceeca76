/// A path as hexadecimal digits and slashes: names need not be text of one line.
package enum PathDigits {
    package static func text(_ path: some Collection<FileName>) -> String {
        path.map { text($0.bytes) }.joined(separator: "/")
    }

    /// Empty for what is no such text.
    package static func path(_ text: some StringProtocol) -> [FileName] {
        let names = text.split(separator: "/").map { FileName(bytes(Substring($0))) }
        return names.contains { $0 == nil } ? [] : names.compactMap { $0 }
    }

    package static func text(_ bytes: [UInt8]) -> String { bytes.map { hexadecimal($0) }.joined() }

    package static func bytes(_ text: Substring) -> [UInt8] {
        let digits = Array(text.utf8)
        return stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }
}
