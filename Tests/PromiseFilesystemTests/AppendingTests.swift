import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseTestSupport
import Testing

/// What programs write at the end of a file (O_APPEND).
@Suite struct AppendingTests {
    /// A file of five bytes is open here.
    private func withFile(_ body: (SimulatedDomain, SimulatedDomain.OpenFile) async throws -> Void) async throws -> [String] {
        let domain = try SimulatedDomain()
        var tree: [String] = []
        try await domain.run {
            try await domain.write("start", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            let file = try await domain.open(["file"])
            try await body(domain, file)
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            tree = try await domain.tree()
        }
        return tree
    }

    /// > A call that the old daemon had carried out, but not answered
    ///
    /// So many bytes were at the end when it died.
    @Test(arguments: [0, 2, 4]) func whatComesAgainIsThereOnce(_ count: Int) async throws {
        let tree = try await withFile { domain, file in
            try await domain.write(String("line".prefix(count)), to: file, at: 5, appends: true)
            let answer = try await domain.write("line", to: file, at: 5, appends: true, isResent: true)
            #expect(answer == 4)
        }
        #expect(tree == ["file=startline"])
    }

    /// By a view, of which the kernel knew nothing yet.
    @Test func whatComesAgainIsBehindWhatOthersHavePutThere() async throws {
        let tree = try await withFile { domain, file in
            try await domain.write("other", to: file, at: 5, appends: true)
            let answer = try await domain.write("line", to: file, at: 5, appends: true, isResent: true)
            #expect(answer == 4)
        }
        #expect(tree == ["file=startotherline"])
    }

    @Test func whatComesAgainIsFoundBeforeWhatOthersHaveWrittenSince() async throws {
        let tree = try await withFile { domain, file in
            for text in ["line", "more"] { try await domain.write(text, to: file, at: 5, appends: true) }
            let answer = try await domain.write("line", to: file, at: 5, appends: true, isResent: true)
            #expect(answer == 4)
        }
        #expect(tree == ["file=startlinemore"])
    }

    /// The kernel's end was the one before a view had written there, whose bytes were replaced.
    @Test func whatIsWrittenAtTheEndOfAFileThatIsOnItsWayReplacesNothing() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            let size: UInt64 = 1_200_000
            let node = try await domain.placeholder("file", of: String(repeating: "a", count: Int(size)))
            let file = try await domain.open(["file"])
            for text in ["one,", "two,"] { try await domain.write(text, to: file, at: size, appends: true) }
            // These are there, one as a whole and one to its third byte.
            try await domain.write("one,", to: file, at: size, appends: true, isResent: true)
            let answer = try await domain.write("wo,three", to: file, at: size + 5, appends: true, isResent: true)
            #expect(answer == 8)
            #expect(try await domain.node(at: ["file"]).size == size + 13)
            #expect(try domain.index.read { transaction throws(Failure) in try transaction.node(node)?.content } == .partial)
            domain.close(file)
            await domain.provider.holdFetches(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree().map { $0.suffix(14) } == ["aone,two,three"])
        }
    }
}
