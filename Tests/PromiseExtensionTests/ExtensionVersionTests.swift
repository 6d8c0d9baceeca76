import PromiseCore
import PromiseExtension
import PromiseProvider
import Testing

/// What an extension keeps of what its files were before.
@Suite(.timeLimit(.minutes(5))) struct ExtensionVersionTests {
    private static let file = ItemReference(identifier: ItemIdentifier("a/b"), path: [FileName("b")!])

    private static func said(_ identifier: String, _ size: String = "4", _ modified: String = "1") -> String {
        "{\"identifier\": \"\(identifier)\", \"size\": \(size), \"modified\": \(modified)}"
    }

    private func withVersions(
        _ script: @escaping ScriptedExtension.Script,
        _ body: (ExtensionProvider, ScriptedExtension) async throws -> Void
    ) async throws {
        try await withExtension(capabilities: "\"versions\"", script, body)
    }

    @Test func whatAFileWasIsListedTheNewestFirstAndRead() async throws {
        let rows = [Self.said("1", "4", "1000000000"), Self.said("v/2", "5", "3000000000"), Self.said("1", "9", "2000000000")]
        try await withVersions({ request in
            switch request.path {
            case "items/a%2Fb/versions": reply("200 OK", "{\"versions\": [\(rows.joined(separator: ","))]}")
            case "items/a%2Fb/versions/v%2F2/content": reply("200 OK", "older")
            default: reply("404 Not Found", "{\"detail\": \"it had to make room\"}")
            }
        }) { provider, _ in
            let found = try await provider.earlierVersions(of: Self.file)
            #expect(found.map(\.identifier) == ["v/2", "1"] && found.map(\.size) == [5, 4])
            #expect(found.first?.version == ContentVersion("v/2"))
            #expect(found.first?.modificationTime == Timestamp(seconds: 3, nanoseconds: 0))
            let sink = ConformanceSink()
            try await provider.fetchContents(of: Self.file, earlier: found[0], into: sink)
            #expect(sink.bytes == Array("older".utf8))
            let gone = await error { try await provider.fetchContents(of: Self.file, earlier: found[1], into: sink) }
            #expect(gone?.code == .notFound && gone?.message.contains("it had to make room") == true)
        }
    }

    @Test func anExtensionThatDoesNotDeclareVersionsIsNotAskedForAny() async throws {
        try await withExtension({ _ in reply("500 Internal Server Error") }) { provider, server in
            let found = try await provider.earlierVersions(of: Self.file)
            #expect(found == [])
            let version = EarlierVersion(
                identifier: "1", version: ContentVersion("1"), size: 1, modificationTime: .zero)
            let problem = await error {
                try await provider.fetchContents(of: Self.file, earlier: version, into: ConformanceSink())
            }
            #expect(problem?.code == .notFound && server.requests.count == 2)
        }
    }

    /// What a terminal would obey, nobody could name, or no file can be, is none.
    @Test(arguments: [
        said(""), said("\\u009b2J"), said("a b"), said(".."), said("given-up-1"), said("1", "-1"),
        said("1", "9223372036854775807"),
        "{\"identifier\": \"1\", \"version\": \"\\n\", \"size\": 1, \"modified\": 1}",
    ])
    func whatIsNoVersionIsLeftOut(wrong: String) async throws {
        let good = Self.said("good", "0", "-9223372036854775808")
        try await withVersions({ _ in reply("200 OK", "{\"versions\": [\(wrong), \(good)]}") }) { provider, _ in
            let found = try await provider.earlierVersions(of: Self.file)
            #expect(found.map(\.identifier) == ["good"])
        }
    }

    @Test func ofVersionsWithoutEndOnlySomeAreShown() async throws {
        let rows = (0..<10_050).map { Self.said("\($0)") }.joined(separator: ",")
        try await withVersions({ _ in reply("200 OK", "{\"versions\": [\(rows)]}") }) { provider, _ in
            let found = try await provider.earlierVersions(of: Self.file)
            #expect(found.count == 10_000)
        }
    }

    /// Too much, too little, and an end that is nowhere.
    @Test(arguments: [
        reply("200 OK", "too long"), reply("200 OK", "no"), reply("200 OK", "no", length: 4, closes: true),
        reply("206 Partial Content", "text"),
        Answer(pieces: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ntoo long\r\n0\r\n\r\n"]),
    ])
    func aContentOfAnotherLengthIsNotThatVersion(answer: ScriptedExtension.Answer) async throws {
        try await withVersions({ _ in answer }) { provider, _ in
            let version = EarlierVersion(
                identifier: "1", version: ContentVersion("1"), size: 4, modificationTime: .zero)
            let found = await error {
                try await provider.fetchContents(of: Self.file, earlier: version, into: ConformanceSink())
            }
            #expect(found?.code == .corrupted || found?.code == .retry, "\(String(describing: found))")
        }
    }
}
