import Foundation
import PromiseCore
import PromiseTestSupport
import Testing

/// The same as git decides, whatever the patterns.
@Suite struct IgnorePatternTests {
    private func path(_ text: String) -> [FileName] { text.split(separator: "/").compactMap { FileName(String($0)) } }

    @Test(arguments: [
        ("*.o", "a/b.o", false, true), ("*.o", "b.oo", false, nil), ("/a", "a", false, true), ("/a", "b/a", false, nil),
        ("a/", "a", false, nil), ("a/", "a", true, true), ("a/b", "a/b", false, true), ("a/b", "c/a/b", false, nil),
        ("**/b", "b", false, true), ("**/b", "a/c/b", false, true), ("a/**", "a/b/c", false, true), ("a/**", "a", true, nil),
        ("a/**/b", "a/b", false, true), ("a/**/b", "a/x/y/b", false, true), ("a/*/b", "a/b", false, nil),
        ("# no", "# no", false, nil), ("\\#yes", "#yes", false, true), ("\\!x", "!x", false, true), ("x  ", "x", false, true),
        ("x\\ ", "x ", false, true), ("[a-c]x", "bx", false, true), ("[!a-c]x", "bx", false, nil), ("a[", "a[", false, nil),
        ("[[:digit:]]", "7", false, true), ("[]-]", "]", false, true), ("a\\", "a\\", false, nil), ("", "a", false, nil),
        ("*.o\n!keep.o", "keep.o", false, false), ("a?c", "a/c", false, nil),
    ] as [(String, String, Bool, Bool?)])
    func aPatternMeansWhatItMeansToGit(_ text: String, _ name: String, _ isFolder: Bool, _ expected: Bool?) {
        #expect(IgnorePatterns(text.utf8).excludes(path(name), isFolder: isFolder) == expected)
    }

    /// A stranger's pattern must not keep a thread busy.
    @Test(.timeLimit(.minutes(5))) func aPatternOfManyStarsEnds() {
        let patterns = IgnorePatterns(String(repeating: "*a", count: 400).utf8 + Array("b".utf8))
        let name = FileName(String(repeating: "a", count: 250))!
        for _ in 0..<50 { #expect(patterns.excludes([name, name, name], isFolder: false) == nil) }
    }

    @Test(.timeLimit(.minutes(5))) func randomPatternsDecideAsGitDoes() throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/git") else { return }
        var generator = SeededGenerator(for: "IgnorePatternTests")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ignore-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var items: [(path: String, isFolder: Bool)] = []
        for first in ["a", "b", "ab", "c.o"] {
            items.append((first, true))
            for second in ["a", "b", "ba", "x.o"] {
                items.append(("\(first)/\(second)", second != "x.o"))
                if second == "x.o" { continue }
                for third in ["a", "b", "c.o", "a b"] { items.append(("\(first)/\(second)/\(third)", false)) }
            }
        }
        for item in items {
            let place = folder.appendingPathComponent(item.path)
            try FileManager.default.createDirectory(
                at: item.isFolder ? place : place.deletingLastPathComponent(), withIntermediateDirectories: true)
            if !item.isFolder { try Data().write(to: place) }
        }
        _ = try run(["init", "-q", folder.path], input: "")
        let pieces = ["a", "b", "*", "?", "**", "/", "/", "[ab]", "[!a]", ".o", "c", "**/", "/**/", "\\a", " "]
        for _ in 0..<120 {
            let lines = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                let length = Int.random(in: 1...4, using: &generator)
                let body = (0..<length).map { _ in pieces.randomElement(using: &generator)! }.joined()
                return (Int.random(in: 0..<4, using: &generator) == 0 ? "!" : "") + body
            }
            // Git itself forgets what is before two stars in the middle of a name, and what two slashes mean.
            let text = lines.filter { !isDisputed($0) }.joined(separator: "\n") + "\n"
            try Data(text.utf8).write(to: folder.appendingPathComponent(".gitignore"))
            let answer = try run(
                ["-C", folder.path, "check-ignore", "--no-index", "--stdin"],
                input: items.map(\.path).joined(separator: "\n") + "\n")
            let ignored = Set(answer.split(separator: "\n").map { $0.trimmingCharacters(in: ["\""]) })
            let patterns = IgnorePatterns(text.utf8)
            for item in items {
                #expect(isExcluded(item.path, item.isFolder, patterns) == ignored.contains(item.path), "\(text) of \(item.path)")
            }
        }
    }

    private func isDisputed(_ line: String) -> Bool {
        if line.contains("//") || line.contains("***") { return true }
        return line.range(of: "[^/!]\\*\\*|\\*\\*[^/]", options: .regularExpression) != nil
    }

    private func isExcluded(_ text: String, _ isFolder: Bool, _ patterns: IgnorePatterns) -> Bool {
        let names = path(text)
        for count in 1...names.count {
            let isLast = count == names.count
            if patterns.excludes(Array(names.prefix(count)), isFolder: isLast ? isFolder : true) == true { return true }
        }
        return false
    }

    private func run(_ arguments: [String], input: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/git")
        process.arguments = arguments
        let (stdin, stdout) = (Pipe(), Pipe())
        process.standardInput = stdin
        process.standardOutput = stdout
        process.standardError = FileHandle.nullDevice
        try process.run()
        stdin.fileHandleForWriting.write(Data(input.utf8))
        try stdin.fileHandleForWriting.close()
        let output = stdout.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: output, as: UTF8.self)
    }
}
