// What strangers wrote, on a terminal or in a log: names, versions, sentences of servers.

/// With everything escaped that a terminal obeys, or that shows other text than there is: control
/// characters, those of C1 among them (U+0080 to U+009F), those that change the direction of
/// writing (Unicode, UAX 9), and ends of lines. `keepsLines`: LF and TAB stay. `keepsColours`: the
/// sequences that `promisefs` itself colours words with stay.
package func escapedForTerminal(
    _ text: String, keepsLines: Bool = false, keepsColours: Bool = false
) -> String {
    guard text.unicodeScalars.contains(where: { isObeyed($0) }) else { return text }
    var result = ""
    var rest = text.unicodeScalars[...]
    while let scalar = rest.first {
        if keepsColours, let sequence = colour(at: rest) {
            result.unicodeScalars.append(contentsOf: rest.prefix(sequence))
            rest = rest.dropFirst(sequence)
            continue
        }
        rest = rest.dropFirst()
        let isKept = keepsLines && (scalar == "\n" || scalar == "\t")
        if isKept || !isObeyed(scalar) {
            result.unicodeScalars.append(scalar)
        } else {
            result += escaped(scalar)
        }
    }
    return result
}

/// The same text in JSON, whose strings are all that may hold such characters.
package func escapedInJSON(_ document: String) -> String {
    guard document.unicodeScalars.contains(where: { $0.value >= 0x7F && isObeyed($0) }) else {
        return document
    }
    var result = ""
    for scalar in document.unicodeScalars {
        if scalar.value >= 0x7F, isObeyed(scalar) {
            let digits = String(scalar.value, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        } else {
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}

private func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F: true
    // Marks, embeddings, overrides and isolates of direction; the ends of lines and paragraphs.
    case 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
}

private func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar.value {
    case 0x0A: "\\n"
    case 0..<0x80: "\\x" + hexadecimal(UInt8(scalar.value))
    default: "\\u{" + String(scalar.value, radix: 16) + "}"
    }
}

/// The length of ESC [ digits m.
private func colour(at text: Substring.UnicodeScalarView) -> Int? {
    guard text.starts(with: "\u{1B}[".unicodeScalars) else { return nil }
    let digits = text.dropFirst(2).prefix { ("0"..."9").contains($0) }
    guard (1...2).contains(digits.count), text.dropFirst(2 + digits.count).first == "m" else {
        return nil
    }
    return digits.count + 3
}
