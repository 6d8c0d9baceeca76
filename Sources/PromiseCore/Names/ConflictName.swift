/// The name of the second version of a conflict: `name (conflict, HOST, DATE).ext`.
///
/// The result is at most 255 bytes: the stem is cut, at a UTF-8 boundary where it has one. `attempt` counts
/// from 1 and is shown from 2 on, for when the name is taken.
package func conflictName(of name: FileName, host: String, date: String, attempt: Int) -> FileName {
    precondition(attempt >= 1, "attempts count from 1, not \(attempt)")
    let number = attempt == 1 ? "" : " \(attempt)"
    let safeHost = host.utf8.map { $0 == UInt8(ascii: "/") || $0 == 0 ? UInt8(ascii: "-") : $0 }
    let mark = Array(" (conflict, ".utf8) + safeHost.prefix(64) + Array(", \(date)\(number))".utf8)
    let (stem, suffix) = split(name)
    let room = FileName.byteCountMax - mark.count - suffix.count
    let bytes = cut(stem, to: room) + mark + suffix
    guard let result = FileName(bytes) else { preconditionFailure("a conflict name must be legal: \(escapedForDisplay(bytes))") }
    return result
}

/// What the name of a conflict version says, whichever machine made it.
package struct ConflictName: Hashable, Sendable {
    private static let mark = Array(" (conflict, ".utf8)
    private static let dateByteCount = 10

    private let name: FileName
    private let host: String
    private let date: String
    private let attempt: Int
    /// The document's name; only its beginning where it was too long (`isCut`).
    package let document: FileName
    /// The document's name may have been longer.
    package var isCut: Bool { name.bytes.count > FileName.byteCountMax - 4 }

    /// Nil for any other name, also for one that only looks alike: `conflictName` makes this one of `document`.
    package init?(_ name: FileName) {
        guard let head = ConflictName.lastMark(in: name.bytes) else { return nil }
        let rest = name.bytes[(head + ConflictName.mark.count)...]
        for comma in rest.indices where rest[comma...].starts(with: [0x2C, 0x20]) {
            guard let end = rest[comma...].firstIndex(of: UInt8(ascii: ")")) else { return nil }
            let words = rest[(comma + 2)..<end].split(separator: 0x20, omittingEmptySubsequences: false)
            guard words.count <= 2, ConflictName.isDate(words[0]),
                let attempt = words.count == 1 ? 1 : Int(String(decoding: words[1], as: UTF8.self)), attempt > 0,
                let host = String(validating: rest[..<comma], as: UTF8.self),
                let document = FileName(Array(name.bytes[..<head]) + rest[(end + 1)...])
            else { continue }
            let found = ConflictName(name, host, String(decoding: words[0], as: UTF8.self), attempt, document)
            guard found.isVersion(of: document) else { continue }
            self = found
            return
        }
        return nil
    }

    private init(_ name: FileName, _ host: String, _ date: String, _ attempt: Int, _ document: FileName) {
        (self.name, self.host, self.date, self.attempt, self.document) = (name, host, date, attempt, document)
    }

    package func isVersion(of document: FileName) -> Bool {
        conflictName(of: document, host: host, date: date, attempt: attempt) == name
    }

    /// What its document's name begins with.
    package var beginning: FileName? { FileName(split(document).stem) }

    /// What the names of all conflict versions of a document begin with, unless that is too long.
    package static func beginning(ofVersionsOf document: FileName) -> FileName? {
        FileName(split(document).stem + mark)
    }

    private static func lastMark(in bytes: [UInt8]) -> Int? {
        // Most names have no bracket at all.
        guard bytes.contains(UInt8(ascii: ")")) else { return nil }
        return bytes.indices.last { bytes[$0...].starts(with: mark) }
    }

    private static func isDate(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count == dateByteCount else { return false }
        return text.enumerated().allSatisfy { index, byte in
            index == 4 || index == 7 ? byte == UInt8(ascii: "-") : (0x30...0x39).contains(byte)
        }
    }
}

/// Splits off the extension with its dot. A leading dot is part of the stem; a long extension is none.
private func split(_ name: FileName) -> (stem: ArraySlice<UInt8>, suffix: ArraySlice<UInt8>) {
    guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, name.bytes.count - dot <= 32 else {
        return (name.bytes[...], [])
    }
    return (name.bytes[..<dot], name.bytes[dot...])
}

private func cut(_ stem: ArraySlice<UInt8>, to count: Int) -> ArraySlice<UInt8> {
    guard stem.count > count else { return stem }
    var end = stem.startIndex + max(count, 0)
    // A continuation byte (10xxxxxx) must not lose its head; at most three bytes are given up.
    for _ in 0..<3 where end > stem.startIndex && stem[end] & 0xC0 == 0x80 { end -= 1 }
    return stem[..<end]
}
