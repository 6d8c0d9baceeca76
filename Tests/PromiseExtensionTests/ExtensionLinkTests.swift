import PromiseCore
import PromiseExtension
import PromiseProvider
import Testing

/// Links that an extension makes for strangers.
@Suite(.timeLimit(.minutes(5))) struct ExtensionLinkTests {
    private static let item = ItemReference(
        identifier: ItemIdentifier("a/b"), path: [FileName("d")!, FileName("b")!])
    /// In 2100.
    private static let end = Timestamp(seconds: 4_102_444_800, nanoseconds: 0)

    private func withLinks(
        _ script: @escaping ScriptedExtension.Script,
        _ body: (any SharingLinks, ScriptedExtension) async throws -> Void
    ) async throws {
        try await withExtension(capabilities: "\"sharing-links\"", script) { provider, server in
            #expect(provider.capabilities.contains(.sharingLinks))
            let links = try #require(provider.sharingLinks)
            try await body(links, server)
        }
    }

    @Test func aLinkIsMadeListedAndRevoked() async throws {
        let said = """
            {"id": "17", "url": "https://example.com/s/17", "path": "/d/b%FF", "until": 4102444799000000000}
            """
        try await withLinks({ request in
            switch "\(request.method) \(request.path.prefix(10))" {
            case "POST items/a%2F": reply("201 Created", said)
            case "GET links": reply("200 OK", "{\"links\": [\(said)]}")
            case "DELETE links/17": reply("204 No Content")
            default: reply("404 Not Found", "{\"detail\": \"there is no such link\"}")
            }
        }) { links, server in
            let made = try await links.make(to: Self.item, kind: .file, until: Self.end)
            #expect(made.identifier == "17" && made.address == "https://example.com/s/17")
            #expect(made.path == Self.item.path && made.end?.seconds == Self.end.seconds - 1)
            #expect(server.requests.last?.path == "items/a%2Fb/links?until=4102444800000000000")
            let listed = try await links.list()
            #expect(listed.map(\.identifier) == ["17"])
            #expect(listed.first?.path?.last?.bytes == Array("b".utf8) + [0xFF])
            try await links.revoke("17")
            for name in ["18", "../root", "..", ""] {
                let gone = await error { try await links.revoke(name) }
                #expect(gone?.code == .notFound)
            }
        }
    }

    @Test func anExtensionThatDoesNotDeclareLinksIsNotAskedForAny() async throws {
        try await withExtension({ _ in reply("500 Internal Server Error") }) { provider, server in
            #expect(provider.sharingLinks == nil && !provider.capabilities.contains(.sharingLinks))
            #expect(server.requests.map(\.path) == ["capabilities", "root"])
        }
    }

    /// Its owner would believe that it ends.
    @Test(arguments: ["", ", \"until\": 4102444800000000001"])
    func aLinkThatLastsLongerThanItWasToIsTakenBack(until: String) async throws {
        let said = "{\"id\": \"1\", \"url\": \"https://example.com/s\"\(until)}"
        try await withLinks({ request in
            request.method == "POST" ? reply("201 Created", said) : reply("204 No Content")
        }) { links, server in
            let found = await error { _ = try await links.make(to: Self.item, kind: .file, until: Self.end) }
            #expect(found?.code == .permanent && found?.message.contains("it was taken back") == true)
            #expect(server.requests.last.map { "\($0.method) \($0.path)" } == "DELETE links/1")
        }
        try await withLinks({ request in
            request.method == "POST" ? reply("201 Created", said) : reply("500 Internal Server Error")
        }) { links, _ in
            let found = await error { _ = try await links.make(to: Self.item, kind: .file, until: Self.end) }
            #expect(found?.message.contains("does not take it back: https://example.com/s") == true)
        }
    }

    /// Strangers reached the item by it, and no list showed it.
    @Test(arguments: [false, true]) func aLinkThatIsNoAddressIsTakenBack(isKept: Bool) async throws {
        try await withLinks({ request in
            if request.method == "POST" { return reply("201 Created", "{\"id\": \"1\", \"url\": \"ftp://a b\"}") }
            return isKept ? reply("500 Internal Server Error") : reply("204 No Content")
        }) { links, server in
            let found = await error { _ = try await links.make(to: Self.item, kind: .file, until: nil) }
            let words = isKept ? "does not take it back: it calls it '1'" : "it was taken back"
            #expect(found?.code == .permanent && found?.message.contains(words) == true)
            #expect(server.requests.contains { "\($0.method) \($0.path)" == "DELETE links/1" })
        }
    }

    @Test func aDateThatHasPassedIsRefusedHere() async throws {
        try await withLinks({ _ in reply("500 Internal Server Error") }) { links, server in
            let found = await error {
                _ = try await links.make(to: Self.item, kind: .file, until: Timestamp(seconds: 1, nanoseconds: 0))
            }
            #expect(found?.code == .refused && server.requests.count == 2)
        }
    }

    /// What would be obeyed by a terminal, or run by a browser, is no link.
    @Test(arguments: [
        "\"url\": \"javascript:alert(1)\"", "\"url\": \"https://example.com/\\u001b[2J\"",
        "\"url\": \"https://example.com/\\u202e\"", "\"url\": \"https://example.com/a b\"", "\"url\": \"\"",
        "\"url\": \"https://example.com\", \"id\": \"\\u009b2J\"", "\"url\": \"https://example.com\", \"id\": \"\"",
    ])
    func whatIsNoLinkIsLeftOut(members: String) async throws {
        let good = "{\"url\": \"http://example.com/good\", \"path\": \"/a/..\", \"until\": -9223372036854775808}"
        try await withLinks({ request in
            request.method == "POST"
                ? reply("201 Created", "{\(members)}") : reply("200 OK", "{\"links\": [{\(members)}, \(good)]}")
        }) { links, _ in
            let found = await error { _ = try await links.make(to: Self.item, kind: .file, until: nil) }
            #expect(found?.code == .permanent)
            let listed = try await links.list()
            #expect(listed.map(\.address) == ["http://example.com/good"] && listed.first?.path == nil)
        }
    }

    /// The slash and the mark behind it are one character.
    @Test func aNameMayBeginWithACombiningMark() async throws {
        let said = "{\"url\": \"https://example.com\", \"path\": \"/\u{301}a/\u{301}b\"}"
        try await withLinks({ _ in reply("200 OK", "{\"links\": [\(said)]}") }) { links, _ in
            let path = try await links.list().first?.path
            #expect(path == [FileName("\u{301}a")!, FileName("\u{301}b")!])
        }
    }

    @Test func aStorageThatKeepsNoListSaysSo() async throws {
        try await withLinks({ _ in reply("501 Not Implemented", "{\"detail\": \"nobody writes them down\"}") }) { links, _ in
            let found = await error { _ = try await links.list() }
            #expect(found?.code == .refused && found?.message.contains("nobody writes them down") == true)
        }
    }
}
