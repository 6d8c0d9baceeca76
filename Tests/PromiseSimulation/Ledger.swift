import PromiseCore

/// Who wrote what, and what somebody who saw it has given away.
///
/// What is written is tokens of 16 bytes, each written once, so that any content says of what it is made.
struct Ledger {
    static let tokenSize = 16
    private(set) var written: [String: String] = [:]
    private(set) var given: Set<String> = []
    private var count = 0

    mutating func token(by writer: String) -> String {
        count += 1
        let number = "\(count)"
        let text = "<" + writer + "-" + String(repeating: "0", count: max(0, 10 - number.count)) + number
        return text.padding(to: Ledger.tokenSize - 1) + ">"
    }

    /// The call that wrote it has returned.
    mutating func wrote(_ token: String, by writer: String) { written[token] = writer }

    /// Somebody who saw these has overwritten or removed them.
    mutating func gave(_ tokens: Set<String>) { given.formUnion(tokens) }

    func lost(_ present: Set<String>) -> [String] {
        written.keys.filter { !given.contains($0) && !present.contains($0) }.sorted()
    }

    static func tokens(in bytes: [UInt8]) -> Set<String> {
        var result: Set<String> = []
        var position = 0
        while position + tokenSize <= bytes.count {
            if bytes[position] == 0x3C, bytes[position + tokenSize - 1] == 0x3E {
                result.insert(String(decoding: bytes[position..<position + tokenSize], as: UTF8.self))
                position += tokenSize
            } else {
                position += 1
            }
        }
        return result
    }
}

extension String {
    func padding(to count: Int) -> String {
        utf8.count >= count ? String(prefix(count)) : self + String(repeating: ".", count: count - utf8.count)
    }
}
