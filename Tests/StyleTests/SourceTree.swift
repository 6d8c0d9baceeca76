import Foundation

/// The files of this repository as the style rules see them. Found from the place of this very file.
struct SourceTree {
    /// A Swift file: its lines as written, and the same with comments and string literals blanked out.
    struct SwiftFile: Sendable {
        /// Relative to the root of the repository.
        let path: String
        let lines: [String]
        let code: [String]

        /// The folder that makes the module: `PromiseCore` of `Sources/PromiseCore/Item.swift`.
        var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
        var isTest: Bool { path.hasPrefix("Tests/") }
    }

    /// Any text file, for rules on words.
    struct TextFile: Sendable {
        let path: String
        let lines: [String]
    }

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    static let swiftFiles: [SwiftFile] = files(below: ["Sources", "Mount", "Tests"]) { $0.hasSuffix(".swift") }.map { path in
        let text = contents(path)
        let blanked = String(decoding: blankingCommentsAndStrings(Array(text.utf8)), as: UTF8.self)
        return SwiftFile(path: path, lines: splitLines(text), code: splitLines(blanked))
    }

    static let documents: [TextFile] =
        (names(in: "").filter { $0.hasSuffix(".md") } + files(below: ["docs"]) { $0.hasSuffix(".md") })
        .map { TextFile(path: $0, lines: splitLines(contents($0))) }

    static let texts: [TextFile] = {
        let top = names(in: "").filter { name in
            name.hasSuffix(".md") || name.hasSuffix(".swift") || name == "Makefile"
        }
        let folders = ["Sources", "Mount", "Tests", "Benchmarks", "docs", "scripts", "samples", ".ci"]
        return (top + files(below: folders) { _ in true }).compactMap { path in
            let text = contents(path)
            // As grep(1) has it: a picture is no text, and any word may be in it by chance.
            return text.contains("\0") ? nil : TextFile(path: path, lines: splitLines(text))
        }
    }()

    private static func contents(_ path: String) -> String {
        // A file that is not UTF-8 still has lines; what cannot be decoded becomes U+FFFD.
        String(decoding: FileManager.default.contents(atPath: root + "/" + path) ?? Data(), as: UTF8.self)
    }

    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: root + "/" + folder)) ?? []).sorted()
    }

    private static func files(below folders: [String], where isWanted: (String) -> Bool) -> [String] {
        var result: [String] = []
        for folder in folders {
            for name in names(in: folder) where !name.hasSuffix(".pyc") && name != "__pycache__" {
                let path = folder + "/" + name
                var isFolder: ObjCBool = false
                guard FileManager.default.fileExists(atPath: root + "/" + path, isDirectory: &isFolder) else { continue }
                if isFolder.boolValue {
                    result += files(below: [path], where: isWanted)
                } else if isWanted(path) {
                    result.append(path)
                }
            }
        }
        return result
    }

    private static func splitLines(_ text: String) -> [String] {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.last == "" { lines.removeLast() }
        return lines
    }
}

/// Replaces every byte of comments and string literals by a space and keeps the line breaks. Code inside an
/// interpolation stays code. Enough of Swift's lexical rules for checks by eye; regex literals are not known.
func blankingCommentsAndStrings(_ source: [UInt8]) -> [UInt8] {
    var blanker = Blanker(source)
    blanker.blankCode(untilClosingParenthesis: false)
    return blanker.output
}

private struct Blanker {
    let source: [UInt8]
    var output: [UInt8]
    var position = 0

    init(_ source: [UInt8]) {
        self.source = source
        output = source
    }

    func has(_ text: StaticString, at offset: Int = 0) -> Bool {
        text.withUTF8Buffer { bytes in
            position + offset + bytes.count <= source.count
                && bytes.indices.allSatisfy { source[position + offset + $0] == bytes[$0] }
        }
    }

    mutating func blank(_ count: Int) {
        for _ in 0..<count where position < source.count {
            if source[position] != UInt8(ascii: "\n") { output[position] = UInt8(ascii: " ") }
            position += 1
        }
    }

    mutating func blankCode(untilClosingParenthesis: Bool) {
        var depth = 0
        while position < source.count {
            if has("//") {
                while position < source.count, source[position] != UInt8(ascii: "\n") { blank(1) }
            } else if has("/*") {
                blankBlockComment()
            } else if let hashes = hashesBeforeQuote() {
                blankString(hashes: hashes)
            } else {
                if source[position] == UInt8(ascii: "(") { depth += 1 }
                if source[position] == UInt8(ascii: ")") {
                    if untilClosingParenthesis, depth == 0 { return }
                    depth -= 1
                }
                position += 1
            }
        }
    }

    /// How many `#` stand before a quote here; nil when no string starts here.
    func hashesBeforeQuote() -> Int? {
        var count = 0
        while position + count < source.count, source[position + count] == UInt8(ascii: "#") { count += 1 }
        guard position + count < source.count, source[position + count] == UInt8(ascii: "\"") else { return nil }
        return count
    }

    mutating func blankBlockComment() {
        var depth = 0
        repeat {
            if has("/*") {
                depth += 1
                blank(2)
            } else if has("*/") {
                depth -= 1
                blank(2)
            } else {
                blank(1)
            }
        } while depth > 0 && position < source.count
    }

    mutating func blankString(hashes: Int) {
        blank(hashes)
        let isLong = has("\"\"\"")
        let quotes = isLong ? 3 : 1
        blank(quotes)
        while position < source.count {
            if has("\"\"\"") || (!isLong && has("\"")), followsHashes(hashes, after: quotes) {
                blank(quotes + hashes)
                return
            }
            if has("\\"), followsHashes(hashes, after: 1) {
                blank(1 + hashes)
                if has("(") {
                    blank(1)
                    blankCode(untilClosingParenthesis: true)
                }
            }
            blank(1)
        }
    }

    func followsHashes(_ count: Int, after offset: Int) -> Bool {
        (0..<count).allSatisfy { has("#", at: offset + $0) }
    }
}
