import Testing

/// Every Swift example is code that the tests compile and run.
@Suite struct SwiftExampleTests {
    private struct Block {
        var place: String
        var lines: [String]
    }

    @Test func everySwiftExampleIsPartOfATest() {
        let blocks = documentBlocks() + commentBlocks()
        #expect(blocks.count > 6, "the examples were not found")
        let tests = SourceTree.swiftFiles.filter { $0.isTest && $0.path.hasSuffix("/ExampleTests.swift") }
        var problems: [String] = []
        for block in blocks where !tests.contains(where: { isPart(block.lines, of: $0.lines) }) {
            problems.append("\(block.place): this example is in no ExampleTests.swift as it stands here")
        }
        report(problems)
    }

    /// Between ```swift and ```.
    private func documentBlocks() -> [Block] {
        var blocks: [Block] = []
        for document in SourceTree.documents {
            var isInside = false
            for (index, line) in document.lines.enumerated() {
                if isInside, line.hasPrefix("```") {
                    isInside = false
                } else if isInside {
                    blocks[blocks.count - 1].lines.append(line)
                } else if line.hasPrefix("```swift") {
                    isInside = true
                    blocks.append(Block(place: "\(document.path):\(index + 1)", lines: []))
                }
            }
        }
        return blocks
    }

    /// What is indented in the comments of the library that applications use.
    private func commentBlocks() -> [Block] {
        let mark = "///     "
        var blocks: [Block] = []
        for file in SourceTree.swiftFiles where file.path.hasPrefix("Sources/PromiseKit/") {
            var isInside = false
            for (index, line) in file.lines.enumerated() {
                guard line.hasPrefix(mark) else {
                    isInside = false
                    continue
                }
                if !isInside { blocks.append(Block(place: "\(file.path):\(index + 1)", lines: [])) }
                isInside = true
                blocks[blocks.count - 1].lines.append(String(line.dropFirst(mark.count)))
            }
        }
        return blocks
    }

    /// One after the other, all indented by the same.
    private func isPart(_ block: [String], of lines: [String]) -> Bool {
        guard let first = block.first, lines.count >= block.count else { return false }
        return (0...lines.count - block.count).contains { start in
            guard lines[start].hasSuffix(first) else { return false }
            let indentation = lines[start].dropLast(first.count)
            guard indentation.allSatisfy({ $0 == " " }) else { return false }
            return block.indices.allSatisfy { index in
                lines[start + index] == (block[index].isEmpty ? "" : indentation + block[index])
            }
        }
    }
}
