import PromiseCore
import PromiseFilesystem
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
}
