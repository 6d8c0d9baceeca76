import PromiseCore

/// Who wrote what, and what somebody who saw it has given away.
///
/// What is written is tokens of 16 bytes, each written once, so that any content says of what it is made.
struct Ledger {
    static let tokenSize = 16
    private(set) var written: [String: String] = [:]
    private(set) var given: Set<String> = []
    /// Of what was written: what somebody has asked to be on the disk.
    private(set) var synced: Set<String> = []
    private var count = 0

    mutating func token() -> String {
        count += 1
        let number = "\(count)"
        return "<" + String(repeating: "0", count: Ledger.tokenSize - 2 - number.count) + number + ">"
    }

    /// The call that wrote it has returned.
    mutating func wrote(_ token: String, by writer: String) { written[token] = writer }

    /// Somebody who saw these has overwritten or removed them.
    mutating func gave(_ tokens: Set<String>) { given.formUnion(tokens) }

    /// A sync of a file that holds these has returned.
    mutating func sync(_ tokens: Set<String>) { synced.formUnion(tokens) }

    /// The power of the machine fails, with these in its files or already at the store. The rest of what was
    /// written on it may be gone; nothing of what `isOf` says is anywhere else.
    mutating func powerFails(at present: Set<String>, isOf: (String) -> Bool) {
        for (token, writer) in written where isOf(writer) && !synced.contains(token) && !present.contains(token) {
            given.insert(token)
        }
    }

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
