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

    /// Each section that promises something says which test shows it.
    @Test func everySectionOfSemanticsNamesATest() throws {
        let semantics = try #require(SourceTree.documents.first { $0.path == "docs/SEMANTICS.md" })
        // They promise nothing, or say what is not promised.
        let others: Set = ["Tenets", "What differs from ext4", "Measured", "Limits"]
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
