import PromiseCore
import PromiseExtension
import PromiseProvider
import Testing

/// What an extension keeps of what was removed.
@Suite(.timeLimit(.minutes(5))) struct ExtensionBinTests {
    private static func said(
        _ identifier: String, _ path: String = "/a", kind: String = "file", size: String = "4", removed: String = "1"
    ) -> String {
        "{\"identifier\": \"\(identifier)\", \"path\": \"\(path)\", \"kind\": \"\(kind)\", \"size\": \(size), "
            + "\"removed\": \(removed)}"
    }

    private func withBin(
        _ script: @escaping ScriptedExtension.Script,
        _ body: (any ProviderBin, ScriptedExtension) async throws -> Void
    ) async throws {
        try await withExtension(capabilities: "\"removed-items\"", script) { provider, server in
            #expect(provider.capabilities.contains(.removedItems))
            let bin = try #require(provider.bin)
            try await body(bin, server)
        }
    }

    @Test func whatWasRemovedIsListedTheNewestFirstAndBroughtBack() async throws {
        let rows = [
            Self.said("1", "/d/b%FF", removed: "1000000000"), Self.said("t/2", "/d", kind: "folder", removed: "3000000000"),
            Self.said("1", "/other", removed: "2000000000"),
        ]
        try await withBin({ request in
            switch "\(request.method) \(request.path)" {
            case "GET removed": reply("200 OK", "{\"items\": [\(rows.joined(separator: ","))]}")
            case "POST removed/t%2F2/restore": reply("204 No Content")
            default: reply("409 Conflict", "{\"detail\": \"its folder is gone\"}")
            }
        }) { bin, _ in
            let items = try await bin.list()
            #expect(items.map(\.identifier) == ["t/2", "1"] && items.map(\.kind) == [.folder, .file])
            #expect(items.map(\.size) == [0, 4] && items[0].removalTime == Timestamp(seconds: 3, nanoseconds: 0))
            #expect(items[1].path.map(\.bytes) == [Array("d".utf8), Array("b".utf8) + [0xFF]])
            try await bin.restore(items[0])
            let found = await error { try await bin.restore(items[1]) }
            #expect(found?.code == .conflict && found?.message.contains("its folder is gone") == true)
        }
    }

    @Test func anExtensionThatDoesNotDeclareABinIsNotAskedForOne() async throws {
        try await withExtension({ _ in reply("500 Internal Server Error") }) { provider, server in
            #expect(provider.bin == nil && server.requests.count == 2)
        }
    }

    /// What could not have been there, and what a terminal would obey.
    @Test(arguments: [
        said(""), said("\\u009b2J"), said("..", "/a"), said("1", ""), said("1", "/"), said("1", "a"), said("1", "/.."),
        said("1", "/a%2Fb"), said("1", "/a%00"), said("1", "/a%"), said("1", kind: "socket"), said("1", size: "-1"),
        said("1", size: "9223372036854775807"), said("1", "/" + String(repeating: "a", count: 256)),
        said("1", String(repeating: "/a", count: 10_000)),
    ])
    func whatCannotHaveBeenThereIsLeftOut(wrong: String) async throws {
        let good = Self.said("good", "/a//b", removed: "-9223372036854775808")
        try await withBin({ _ in reply("200 OK", "{\"items\": [\(wrong), \(good)]}") }) { bin, _ in
            let items = try await bin.list()
            #expect(items.map(\.identifier) == ["good"])
        }
    }

    @Test func ofMoreThanCanBeShownTheNewestAre() async throws {
        let rows = (0..<10_050).map { Self.said("\($0)", removed: "\($0)") }.joined(separator: ",")
        try await withBin({ _ in reply("200 OK", "{\"items\": [\(rows)]}") }) { bin, _ in
            let items = try await bin.list()
            #expect(items.count == 10_000 && items.first?.identifier == "10049")
        }
    }
}
