import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import Testing

/// What reading references costs, and what they say.
@Suite struct ReferenceReadingTests {
    private func settle(_ domain: SimulatedDomain) async throws {
        for _ in 0..<6_000 {
            if try domain.isQuiet() { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        Issue.record("work does not end")
    }

    /// Each reading ran several statements.
    @Test func aReferenceThatIsReadAgainCostsNoStatement() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            for folder in ["d", "e"] { try await domain.makeFolder([folder]) }
            try await domain.write("text", to: ["d", "a"])
            try await domain.expectBothSidesTheSame()
            let identifier = try domain.index.read { transaction throws(Failure) in
                let folder = try transaction.entry(in: .root, named: FileName("d")!)!.node
                return try transaction.entry(in: folder, named: FileName("a")!)?.identifier
            }
            #expect(identifier != nil)
            let path = [FileName("d")!, FileName("a")!]
            let key = ItemKey(identifier: identifier, machine: nil, kind: .file, path: path)
            let link = try await domain.makeLink(["e", "ref"], to: ReferenceRecord(key).target)
            try await settle(domain)
            func read() throws -> (text: String, statements: Int) {
                let before = try domain.index.statementCount()
                let text = String(decoding: try domain.filesystem.linkTarget(of: link), as: UTF8.self)
                return (text, try domain.index.statementCount() - before)
            }
            #expect(try read().text == "../d/a")
            // Who looks for its path has it in memory; one at most looks for the document, and one whether
            // another one was called so where the domain was before.
            try await domain.write("other", to: ["b"])
            try await settle(domain)
            let (first, second) = (try read(), try read())
            #expect(first.text == "../d/a" && first.statements == 2)
            #expect(second.text == "../d/a" && second.statements == 0)
            // After the commit of a change it is another one, whatever was remembered.
            try await domain.rename(["d", "a"], to: ["d", "other"])
            #expect(try read().text == "../d/other")
            // The answer of the provider is a commit of its own, at a moment of its own.
            try await settle(domain)
            #expect(try read().text == "../d/other")
            #expect(try read().statements == 0)
            try await domain.rename(["d"], to: ["e", "d"])
            #expect(try read().text == "d/other")
            try await domain.rename(["e"], to: ["f"])
            #expect(try read().text == "d/other")
            try await domain.rename(["f", "ref"], to: ["ref"])
            #expect(try read().text == "f/d/other")
            try await domain.remove(["f", "d", "other"])
            #expect(try read().text != "f/d/other")
        }
    }
}
