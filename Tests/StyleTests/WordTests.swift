import Foundation
import Testing

/// Words that must not be in certain places, each with what to write instead.
@Suite struct WordTests {
    /// A call or construct, where it is banned, and its replacement. Split words keep this file from tripping over itself.
    struct Ban: Sendable, CustomTestStringConvertible {
        let word: String
        let prefixes: [String]
        let exceptions: [String]
        let remedy: String
        /// What makes a line harmless.
        var harmless: String?
        var testDescription: String { word }
    }

    static let everywhere = ["Sources/", "Mount/", "Tests/"]

    static let machine = [
        "Sources/PromiseSync/Machine/", "Sources/PromiseSync/Tree/", "Sources/PromiseSync/Planning/",
    ]

    static let bans: [Ban] = [
        Ban(
            word: "DispatchSemaphore", prefixes: everywhere, exceptions: [],
            remedy: "waiting blocks a thread of the cooperative pool; use BlockingPool or a continuation"),
        Ban(
            word: "Task {", prefixes: ["Mount/", "Sources/PromiseFilesystem/"], exceptions: [],
            remedy: "a request never waits for a task; park it and let the engine complete it"),
        Ban(
            word: "Task.detached", prefixes: ["Mount/", "Sources/PromiseFilesystem/"], exceptions: [],
            remedy: "a request never waits for a task; park it and let the engine complete it"),
        Ban(
            word: "Task.sleep", prefixes: ["Sources/PromiseSync/"], exceptions: [],
            remedy: "a seed could not replay it; return an action that waits, or use the mailbox's sleep"),
        Ban(
            word: "SystemClock", prefixes: ["Sources/PromiseSync/"], exceptions: [],
            remedy: "a seed could not replay it; the moment and the clock are passed in"),
        Ban(
            word: "Task(", prefixes: machine, exceptions: [],
            remedy: "the machine decides and does nothing; return an action"),
        Ban(
            word: "Mutex", prefixes: machine, exceptions: [],
            remedy: "one thread owns the machine, which needs no lock"),
        Ban(
            word: "Atomic<", prefixes: machine, exceptions: [],
            remedy: "one thread owns the machine, which needs no lock"),
        Ban(
            word: "String(cString:",
            prefixes: ["Sources/PromiseFilesystem/", "Sources/PromiseIndex/", "Sources/PromiseContent/"],
            exceptions: [], remedy: "names are bytes: keep `FileName` or [UInt8]; decode for display only",
            // SQLite's messages are its own text.
            harmless: "sqlite3_errmsg"),
        Ban(
            word: "contentsOfFile: \"/p" + "roc", prefixes: everywhere, exceptions: [],
            remedy: "Foundation reads one page of a file of /proc; use readSmallFile"),
        Ban(
            word: "contents(atPath: \"/p" + "roc", prefixes: everywhere, exceptions: [],
            remedy: "Foundation reads one page of a file of /proc; use readSmallFile"),
        Ban(
            word: "Date()", prefixes: ["Sources/", "Mount/"], exceptions: ["Sources/promisefs/"],
            remedy: "time comes from the clock that is passed in, or nothing can be simulated"),
        Ban(
            word: "Mutex<(@Send" + "able", prefixes: ["Sources/", "Mount/"], exceptions: [],
            remedy: "a closure that is a generic value is wrapped once more at every access; put it in a struct"),
        Ban(
            word: "Monitor<(@Send" + "able", prefixes: ["Sources/", "Mount/"], exceptions: [],
            remedy: "a closure that is a generic value is wrapped once more at every access; put it in a struct"),
        Ban(
            word: "fork()", prefixes: ["Sources/", "Mount/"], exceptions: [],
            remedy: "another thread may hold the allocator's lock; use posix_spawn"),
    ]

    @Test(arguments: bans) func bannedCallsHaveAReplacement(ban: Ban) {
        var problems: [String] = []
        for file in SourceTree.swiftFiles where ban.prefixes.contains(where: file.path.hasPrefix) {
            if ban.exceptions.contains(where: file.path.hasPrefix) { continue }
            for (index, line) in file.code.enumerated() where line.contains(ban.word) {
                if let harmless = ban.harmless, line.contains(harmless) { continue }
                problems.append("\(file.path):\(index + 1): no `\(ban.word)` here: \(ban.remedy)")
            }
        }
        report(problems)
    }

    @Test(arguments: ["@unchecked Sendable", "nonisolated(unsafe)", "try!"])
    func whatTheCompilerCannotCheckHasItsReasonBesideIt(construct: String) {
        var problems: [String] = []
        for file in SourceTree.swiftFiles {
            for (index, line) in file.code.enumerated() where line.contains(construct) {
                if file.lines[index].contains("//") || hasCommentAbove(file, index) { continue }
                problems.append(
                    "\(file.path):\(index + 1): `\(construct)` needs a comment on the line above that says why it holds")
            }
        }
        report(problems)
    }

    @Test func nothingIsLeftToDo() {
        let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "fatalError(\"stub"]
        var problems: [String] = []
        for file in SourceTree.texts {
            for (index, line) in file.lines.enumerated() {
                for mark in marks where contains(line, word: mark) {
                    problems.append("\(file.path):\(index + 1): `\(mark)`: do it now, or describe it in an issue")
                }
            }
        }
        report(problems)
    }

    @Test func everyDocumentHasOneTitle() {
        var problems: [String] = []
        for document in SourceTree.documents {
            var isCode = false
            var titles: [Int] = []
            for (index, line) in document.lines.enumerated() {
                if line.hasPrefix("```") { isCode.toggle() }
                if !isCode, line.hasPrefix("# ") { titles.append(index + 1) }
            }
            if titles.count != 1 {
                problems.append("\(document.path): \(titles.count) lines start with `# `; a document has exactly one title")
            }
        }
        report(problems)
    }

    /// Addresses that a reader can open; everything else is a machine of somebody.
    static let hosts: Set<String> = [
        "docs.nextcloud.com",
        "github.com", "swift.org", "www.swift.org", "www.sqlite.org", "sqlite.org", "man7.org", "docs.kernel.org",
        "www.kernel.org",
        "www.rfc-editor.org", "www.w3.org", "no-color.org", "json-schema.org", "spec.openapis.org", "localhost", "127.0.0.1",
        "example.com", "nowhere.invalid",
        "host", "unix",
        "promisefs", "rclone.org", "docs.aws.amazon.com", "s3.amazonaws.com", "s3.", "owncloud.org", "nextcloud.org",
        // STS, and services of AWS that every machine has for itself.
        "sts.amazonaws.com", "sts.", "pypi.org", "169.254.169.254", "169.254.170.2",
    ]

    @Test func addressesArePublicOnes() throws {
        let address = try Regex("https?://(?:[^/@ \"]+@)?([A-Za-z0-9.-]+)")
        var problems: [String] = []
        for file in SourceTree.texts {
            for (index, line) in file.lines.enumerated() {
                for match in line.matches(of: address) {
                    guard let host = match.output[1].substring.map(String.init), !Self.hosts.contains(host) else { continue }
                    problems.append(
                        "\(file.path):\(index + 1): address of `\(host)`: name the thing, or add a public host to the list")
                }
            }
        }
        report(problems)
    }

    @Test func nothingDependsOnOneMachine() {
        let paths = ["/wo" + "rk/", "/home/" + "user/", "/opt/" + "swift/"]
        var problems: [String] = []
        for file in SourceTree.texts {
            for (index, line) in file.lines.enumerated() {
                for path in paths where line.contains(path) {
                    problems.append("\(file.path):\(index + 1): `\(path)` is a place on one machine; use a relative path")
                }
            }
        }
        report(problems)
    }

    /// Attributes may stand between the comment and the line; nothing else.
    private func hasCommentAbove(_ file: SourceTree.SwiftFile, _ index: Int) -> Bool {
        var above = index - 1
        while above >= 0 {
            let line = file.lines[above].trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("//") || line.hasSuffix("*/") { return true }
            guard line.hasPrefix("@") else { return false }
            above -= 1
        }
        return false
    }

    /// As a whole word: `mkXXXXXX`, a pattern of mktemp, is none.
    private func contains(_ line: String, word: String) -> Bool {
        var rest = line[...]
        while let range = rest.range(of: word) {
            let before = range.lowerBound == line.startIndex ? nil : line[line.index(before: range.lowerBound)]
            let after = range.upperBound == line.endIndex ? nil : line[range.upperBound]
            if !isWordCharacter(before), !isWordCharacter(after) { return true }
            rest = line[range.upperBound...]
        }
        return false
    }

    private func isWordCharacter(_ character: Character?) -> Bool {
        guard let character else { return false }
        return character.isLetter || character.isNumber || character == "_"
    }
}
