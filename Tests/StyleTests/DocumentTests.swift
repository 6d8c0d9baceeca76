import Foundation
import Testing

/// What the documents say of the tests is so.
@Suite struct DocumentTests {
    /// Folders below `Tests`, and suites.
    private let suites: Set<String>
    /// By suite: the names of its test functions.
    private let functions: [String: Set<String>]

    init() {
        var suites: Set<String> = []
        var functions: [String: Set<String>] = [:]
        for file in SourceTree.swiftFiles where file.isTest {
            suites.insert(file.module)
            var current = file.module
            for line in file.code {
                if let suite = DocumentTests.word(after: ["struct ", "class ", "enum "], in: line), suite.hasSuffix("Tests") {
                    suites.insert(suite)
                    current = suite
                }
                if let function = DocumentTests.word(after: ["func "], in: line) {
                    functions[current, default: []].insert(function)
                    functions[file.module, default: []].insert(function)
                }
            }
        }
        self.suites = suites
        self.functions = functions
    }

    /// `Suite`, `Suite/aTest`, `Suite/theBeginningOfATest…`, `Folder/Suite`; what a code span says else is not looked at.
    @Test func everyTestThatADocumentNamesIsThere() {
        var problems: [String] = []
        for document in SourceTree.documents {
            for (index, line) in document.lines.enumerated() {
                for name in codeSpans(in: line) where !isThere(name) {
                    problems.append("\(document.path):\(index + 1): there is no test `\(name)`")
                }
            }
        }
        report(problems)
    }

    /// Documents show them as they are typed: nobody has to name an interpreter.
    @Test func everyScriptThatNamesItsInterpreterCanBeRun() {
        let scripts = SourceTree.texts.filter { $0.lines.first?.hasPrefix("#!") ?? false }
        #expect(!scripts.isEmpty)
        report(scripts.map(\.path).filter { !FileManager.default.isExecutableFile(atPath: SourceTree.root + "/" + $0) }
            .map { "\($0): it may not be executed" })
    }

    /// They promise nothing, or say what is not promised.
    private static let sectionsWithoutPromise: Set = ["Tenets", "What differs from ext4", "Measured", "Limits"]

    /// A test that proves a paragraph, or an item of a list, has its beginning above it, so that a promise cannot change
    /// without its test, nor a test be found without what it is for. What no test proves says so.
    @Test func everyParagraphOfSemanticsIsQuotedByTheTestThatProvesIt() throws {
        let semantics = try #require(SourceTree.documents.first { $0.path == "docs/SEMANTICS.md" })
        let paragraphs = Self.paragraphs(of: semantics)
        var quotes: [(place: String, text: String)] = []
        for file in SourceTree.swiftFiles where file.isTest {
            for (index, line) in file.lines.enumerated() {
                let text = line.drop { $0 == " " }
                if text.hasPrefix("/// > ") { quotes.append(("\(file.path):\(index + 1)", String(text.dropFirst(6)))) }
            }
        }
        for file in SourceTree.texts where file.path.hasPrefix("scripts/workloads/") && file.path.hasSuffix(".py") {
            for (index, line) in file.lines.enumerated() where line.hasPrefix("> ") {
                quotes.append(("\(file.path):\(index + 1)", String(line.dropFirst(2))))
            }
        }
        var problems: [String] = []
        for quote in quotes where !paragraphs.contains(where: { $0.text.hasPrefix(quote.text) }) {
            problems.append("\(quote.place): no paragraph of \(semantics.path) begins with '\(quote.text)'")
        }
        for paragraph in paragraphs where paragraph.isPromise && !paragraph.text.contains("*not tested*") {
            if quotes.contains(where: { paragraph.text.hasPrefix($0.text) }) { continue }
            problems.append(
                "\(semantics.path):\(paragraph.line): no test quotes '\(paragraph.text.prefix(40))…', nor is it *not tested*")
        }
        report(problems)
    }

    private struct Paragraph {
        var line: Int
        var isPromise: Bool
        var text: String
    }

    /// Of prose and lists, each on one line, without bold type and without what names the tests.
    private static func paragraphs(of document: SourceTree.TextFile) -> [Paragraph] {
        var result: [Paragraph] = []
        var isPromise = false
        var isOpen = false
        for (index, line) in document.lines.enumerated() {
            let item = listItem(line)
            if line.hasPrefix("## ") { isPromise = !sectionsWithoutPromise.contains(String(line.dropFirst(3))) }
            if line.allSatisfy({ $0 == " " }) || line.hasPrefix("|") || line.hasPrefix("#") {
                isOpen = false
            } else if isOpen, item == nil {
                result[result.count - 1].text += " " + line.drop { $0 == " " }
            } else {
                result.append(Paragraph(line: index + 1, isPromise: isPromise, text: item ?? line))
                isOpen = true
            }
        }
        for index in result.indices {
            let text = result[index].text.components(separatedBy: "*Shown by*")[0]
            result[index].text = text.components(separatedBy: "**").joined()
        }
        return result.filter { !$0.text.isEmpty }
    }

    /// What follows `- ` or `1. `.
    private static func listItem(_ line: String) -> String? {
        let digits = line.prefix { $0.isNumber }
        let mark = digits.isEmpty ? "- " : digits + ". "
        return line.hasPrefix(mark) ? String(line.dropFirst(mark.count)) : nil
    }

    /// Each section that promises something says which test shows it.
    @Test func everySectionOfSemanticsNamesATest() throws {
        let semantics = try #require(SourceTree.documents.first { $0.path == "docs/SEMANTICS.md" })
        let others = Self.sectionsWithoutPromise
        var problems: [String] = []
        var title: String?
        var isShown = false
        for line in semantics.lines + ["## "] {
            if line.hasPrefix("## ") {
                if let title, !isShown, !others.contains(title) { problems.append("'\(title)' names no test that shows it") }
                title = String(line.dropFirst(3))
                isShown = false
            }
            if line.contains("*Shown by*") { isShown = true }
        }
        report(problems)
    }

    private func isThere(_ name: String) -> Bool {
        let parts = name.split(separator: "/").map(String.init)
        guard let place = parts.lastIndex(where: { $0.hasSuffix("Tests") && $0.first?.isUppercase == true }),
            parts.allSatisfy({ $0.allSatisfy { $0.isLetter || $0.isNumber || $0 == "…" } }), place + 2 >= parts.count
        else { return true }
        guard suites.contains(parts[place]) else { return false }
        guard place + 1 < parts.count else { return true }
        let wanted = parts[place + 1]
        let known = functions[parts[place]] ?? []
        if wanted.hasSuffix("…") { return known.contains { $0.hasPrefix(wanted.dropLast()) } }
        return known.contains(wanted) || suites.contains(wanted)
    }

    /// Between pairs of backticks.
    private func codeSpans(in line: String) -> [String] {
        let pieces = line.split(separator: "`", omittingEmptySubsequences: false)
        return pieces.indices.filter { $0 % 2 == 1 && $0 + 1 < pieces.count }.map { String(pieces[$0]) }
    }

    private static func word(after keywords: [String], in line: String) -> String? {
        for keyword in keywords {
            guard let range = line.firstRange(of: keyword) else { continue }
            return String(line[range.upperBound...].prefix { $0.isLetter || $0.isNumber })
        }
        return nil
    }
}
