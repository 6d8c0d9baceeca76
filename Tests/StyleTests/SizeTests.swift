import Testing

/// Files, functions and lines small enough to be read. The numbers are limits, not aims.
@Suite struct SizeTests {
    static let fileLinesMax = 600
    static let functionLinesMax = 70
    static let columnsMax = 130
    static let typeLinesMax = 800
    /// Types that are too long still, and how long they may be: these numbers only become smaller.
    static let longTypes = [
        "PromiseFilesystem.FileSystem": 3_130, "PromiseIndex.Transaction": 1_780,
    ]

    @Test func filesAreShort() {
        report(
            SourceTree.swiftFiles.filter { $0.lines.count > Self.fileLinesMax }.map {
                "\($0.path):\(Self.fileLinesMax): \($0.lines.count) lines, at most \(Self.fileLinesMax); "
                    + "move one concern to a file of its own"
            })
    }

    @Test func linesAreShort() {
        var problems: [String] = []
        for file in SourceTree.swiftFiles {
            for (index, line) in file.lines.enumerated() where line.count > Self.columnsMax {
                problems.append("\(file.path):\(index + 1): \(line.count) columns, at most \(Self.columnsMax); break the line")
            }
        }
        report(problems)
    }

    @Test func functionsFitAScreen() {
        var problems: [String] = []
        for file in SourceTree.swiftFiles {
            for function in functions(in: file.code) where function.lines > Self.functionLinesMax {
                problems.append(
                    "\(file.path):\(function.line): a function of \(function.lines) lines, at most \(Self.functionLinesMax); "
                        + "keep the branching here and move straight work to helpers")
            }
        }
        report(problems)
    }

    /// Over all its files: a type in many small ones is a large one.
    @Test func typesAreShort() throws {
        let head = try Regex("^[a-z@ ]*\\b(struct|class|enum|actor|extension) ([A-Za-z0-9_]+).*\\{$")
        var lengths: [String: Int] = [:]
        for file in SourceTree.swiftFiles where !file.isTest {
            var begun: (name: String, line: Int)?
            for (index, line) in file.code.enumerated() {
                if begun == nil, let match = line.wholeMatch(of: head), let name = match.output[2].substring {
                    begun = ("\(file.module).\(name)", index)
                }
                guard line.hasPrefix("}"), let (name, first) = begun else { continue }
                lengths[name, default: 0] += index - first + 1
                begun = nil
            }
        }
        #expect(lengths.count > 500, "the pattern finds types no more")
        report(
            lengths.sorted { $0.key < $1.key }.compactMap { name, lines in
                let limit = Self.longTypes[name] ?? Self.typeLinesMax
                guard lines > limit else { return nil }
                return "\(name): \(lines) lines over all its files, at most \(limit); make two types of it"
            })
    }

    @Test func aFunctionIsMeasuredFromItsNameToItsLastBrace() {
        let text = """
            protocol P { func none(); init() }
            struct S {
                init(a: () -> Void = { }) {
                    let s = "}}} \\(["}"].count) {{{" // }
                    self.init()
                }
                func f(
                    a: Int
                ) -> Int {
                    [1].map { $0 }[0]
                }
            }
            """
        let code = String(decoding: blankingCommentsAndStrings(Array(text.utf8)), as: UTF8.self)
        let found = functions(in: code.split(separator: "\n", omittingEmptySubsequences: false).map(String.init))
        #expect(found.map(\.line) == [3, 7])
        #expect(found.map(\.lines) == [4, 5])
    }

    /// Functions with a body, by matching braces. `code` has no comments and no strings.
    private func functions(in code: [String]) -> [(line: Int, lines: Int)] {
        var tokens: [(text: Substring, line: Int)] = []
        for (index, line) in code.enumerated() { tokens += words(of: line).map { ($0, index + 1) } }
        var result: [(line: Int, lines: Int)] = []
        for start in tokens.indices where ["func", "init", "deinit"].contains(tokens[start].text) {
            if start > 0, tokens[start - 1].text == "." { continue }
            guard let open = bodyStart(in: tokens, after: start) else { continue }
            var depth = 0
            for index in open..<tokens.count {
                if tokens[index].text == "{" { depth += 1 }
                if tokens[index].text == "}" { depth -= 1 }
                if depth == 0 {
                    result.append((tokens[start].line, tokens[index].line - tokens[start].line + 1))
                    break
                }
            }
        }
        return result
    }

    /// Nil for a requirement of a protocol, which ends where the next declaration starts.
    private func bodyStart(in tokens: [(text: Substring, line: Int)], after start: Int) -> Int? {
        var depth = 0
        for index in (start + 1)..<max(tokens.count, start + 1) {
            switch tokens[index].text {
            case "(", "[": depth += 1
            case ")", "]": depth -= 1
            case "{" where depth == 0: return index
            case "}" where depth == 0, "func" where depth == 0, "var" where depth == 0, "let" where depth == 0: return nil
            case "init" where depth == 0 && tokens[index - 1].text != ".": return nil
            default: break
            }
        }
        return nil
    }

    /// Identifiers, and each other visible character by itself.
    private func words(of line: String) -> [Substring] {
        var result: [Substring] = []
        var index = line.startIndex
        while index < line.endIndex {
            let character = line[index]
            if character.isLetter || character.isNumber || character == "_" {
                let end = line[index...].firstIndex { !($0.isLetter || $0.isNumber || $0 == "_") } ?? line.endIndex
                result.append(line[index..<end])
                index = end
            } else {
                if !character.isWhitespace { result.append(line[index...index]) }
                index = line.index(after: index)
            }
        }
        return result
    }
}
