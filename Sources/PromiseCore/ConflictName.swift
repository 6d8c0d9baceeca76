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
