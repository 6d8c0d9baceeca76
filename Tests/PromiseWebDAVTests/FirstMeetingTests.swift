import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A mount shows its first folder before it is known what the server does with what is written: 115
/// requests came before it was there.
struct FirstMeetingTests {
    private struct Meeting {
        let server: ScriptedServer
        let names: NameServer
        let provider: WebDAVProvider

        var methods: [String] { server.requests.map { String($0.prefix { $0 != " " }) } }

        func create(_ name: String, _ content: String = "text") async throws -> Item {
            let root = ItemReference(identifier: try await provider.root().identifier, path: [])
            let metadata = Metadata(mode: 0o644, owner: 1, group: 2, modificationTime: .zero)
            let item = NewItem(name: FileName(name)!, kind: .file, metadata: metadata)
            return try await provider.create(item, in: root, contents: try ConformanceSource(Array(content.utf8)))
        }

        func list() async throws -> [Item] {
            let root = ItemReference(identifier: try await provider.root().identifier, path: [])
            return try await provider.enumerateItems(in: root, page: nil).items
        }
    }

    /// With a server that has these files. `answer`: instead of what it says.
    private func withServer(
        _ quirk: NameQuirk = .none, _ files: [String: String] = [:],
        answer: @escaping @Sendable (ScriptedServer.Request) -> String? = { _ in nil },
        _ body: (Meeting) async throws -> Void
    ) async throws {
        let names = NameServer(quirk, files)
        let server = ScriptedServer { answer($0) ?? names.answer($0) }
        defer { server.stop() }
        let provider = try WebDAVProvider(
            location: try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/"),
            credentials: CredentialSource(), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.greet()
        try await body(Meeting(server: server, names: names, provider: provider))
        await provider.letGo()
    }

    @Test func aFirstListingCostsThreeRequestsAndWritesNothing() async throws {
        try await withServer(.none, ["/file": "text"]) { met in
            let items = try await met.list()
            #expect(items.map(\.name) == [FileName("file")!])
            #expect(met.methods == ["OPTIONS", "PROPFIND", "PROPFIND"])
            let sink = MemorySink()
            let file = ItemReference(identifier: items[0].identifier, path: [items[0].name])
            try await met.provider.fetchContents(of: file, version: items[0].version, range: nil, into: sink)
            #expect(met.methods.dropFirst(3) == ["GET"] && met.names.paths == ["/file"])
        }
    }

    @Test func whatIsWrittenWaitsUntilItIsKnownWhatTheServerDoes() async throws {
        try await withServer(.hidesDots) { met in
            #expect(met.provider.limitations.isEmpty)
            async let first = met.create(".one")
            async let second = met.create(".two")
            _ = try await (first, second)
            // Both joined one.
            let tries = met.server.requests.count { $0.hasPrefix("PUT") && $0.contains("/plain ") }
            #expect(tries == 1)
            #expect(met.provider.limitations.contains { $0.contains("a dot first") })
            #expect(Set(try await met.list().map(\.name.display)) == [".one", ".two"])
        }
    }

    /// Another machine wrote it so, as this server shows no names with a dot first.
    @Test func aNameThatMayStandForAnotherIsNotShownBefore() async throws {
        try await withServer(.hidesDots, ["/‛2Ehidden": "text"]) { met in
            let names = try await met.list().map(\.name.display)
            #expect(names == [".hidden"])
        }
    }

    /// It may be able to do tomorrow what it cannot do now.
    @Test func troubleWhileAServerIsTriedIsNoAnswer() async throws {
        let hasTrouble = Mutex(true)
        let answer: @Sendable (ScriptedServer.Request) -> String? = { request in
            request.method == "PUT" && hasTrouble.withLock { $0 } ? reply("503 Service Unavailable") : nil
        }
        try await withServer(answer: answer) { met in
            await #expect(throws: ProviderError.self) { try await met.create("file") }
            #expect(met.provider.limitations.isEmpty)
            hasTrouble.withLock { $0 = false }
            _ = try await met.create("file")
            #expect(!met.provider.limitations.contains { $0.contains("trouble") })
            #expect(met.names.paths.contains("/file"))
        }
    }

    /// After the fourth time it was taken for a server that keeps no properties: modes and times that were set behind a login
    /// page were not sent afterwards, and another machine never had them.
    @Test(arguments: ["a login page", "maintenance", "no entry"])
    func nothingIsLearntOfAServerByALoginPage(_ trouble: String) async throws {
        let hasTrouble = Mutex(true)
        let answer: @Sendable (ScriptedServer.Request) -> String? = { request in
            guard hasTrouble.withLock({ $0 }) else { return nil }
            if trouble == "no entry" { return reply("403 Forbidden") }
            if trouble == "maintenance" { return request.method == "PUT" ? reply("503 Service Unavailable") : nil }
            return ["OPTIONS", "HEAD"].contains(request.method) ? nil : reply("200 OK", ["Content-Type: text/html"], "<html>")
        }
        hasTrouble.withLock { $0 = false }
        try await withServer(answer: answer) { met in
            hasTrouble.withLock { $0 = true }
            for _ in 0..<6 {
                await #expect(throws: ProviderError.self) { try await met.create("file") }
            }
            hasTrouble.withLock { $0 = false }
            _ = try await met.create("file")
            #expect(!met.provider.limitations.contains { $0.contains("trouble") || $0.contains("could not be tried") })
        }
    }

    /// It was taken for one that keeps all names, for good: what a program named in the decomposed form came back under another
    /// name, as something new.
    @Test(arguments: ["MKCOL", "PUT"]) func aServerThatComposesNamesIsTriedAgainWhenItIsBack(_ failing: String) async throws {
        let hasTrouble = Mutex(true)
        let answer: @Sendable (ScriptedServer.Request) -> String? = { request in
            let isInside = request.path.split(separator: "/").count >= (failing == "PUT" ? 4 : 3)
            guard request.method == failing, isInside, hasTrouble.withLock({ $0 }) else { return nil }
            return reply("502 Bad Gateway")
        }
        try await withServer(.composes, answer: answer) { met in
            _ = try await met.create("first")
            #expect(!met.provider.limitations.contains { $0.contains("cannot keep names") })
            hasTrouble.withLock { $0 = false }
            _ = try await met.provider.root()
            _ = try await met.create("e\u{301}")
            #expect(met.provider.limitations.contains { $0.contains("decomposed form") })
            #expect(try await met.list().contains { $0.name.bytes == Array("e\u{301}".utf8) })
            let count = met.server.requests.count
            _ = try await met.provider.root()
            #expect(met.server.requests.count == count + 1, "now it is known")
        }
    }

    /// One call that never works is no reason to write nothing.
    @Test func aServerOfWhichOneThingIsAlwaysBrokenIsWrittenToInTheEnd() async throws {
        let answer: @Sendable (ScriptedServer.Request) -> String? = { request in
            request.method == "LOCK" ? reply("500 Internal Server Error") : nil
        }
        try await withServer(answer: answer) { met in
            for _ in 0..<3 {
                await #expect(throws: ProviderError.self) { try await met.create("file") }
            }
            _ = try await met.create("file")
            #expect(met.names.paths.contains("/file"))
        }
    }

    /// What every machine is to know is looked at at every poll, and was sent each time.
    @Test func aPrivateObjectThatIsTheSameIsNotSentAgain() async throws {
        try await withServer(.none, ["/.promisefs/checks/one": "text"]) { met in
            let objects = try #require(met.provider.privateObjects)
            let name = try #require(PrivateName(.checks, "one"))
            let first = try await objects.read(name)
            let before = met.methods.count
            let second = try await objects.read(name)
            #expect(first?.bytes == Array("text".utf8) && second == first)
            #expect(met.methods.dropFirst(before) == ["PROPFIND"])
        }
    }

    /// What came of one was remembered as all of it, for as long as nobody wrote a new one.
    @Test func aPrivateObjectThatBrokeOffIsReadAgain() async throws {
        let isBroken = Mutex(true)
        let answer: @Sendable (ScriptedServer.Request) -> String? = { request in
            guard request.method == "GET", isBroken.withLock({ $0 }) else { return nil }
            return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nte"
        }
        try await withServer(.none, ["/.promisefs/checks/one": "text"], answer: answer) { met in
            let objects = try #require(met.provider.privateObjects)
            let name = try #require(PrivateName(.checks, "one"))
            await #expect(throws: ProviderError.self) { _ = try await objects.read(name) }
            isBroken.withLock { $0 = false }
            #expect(try await objects.read(name)?.bytes == Array("text".utf8))
        }
    }

    /// Nothing of the kind can be written there; that is known when it was tried.
    @Test func privateObjectsAreOfferedUntilItIsKnownThatThereAreNone() async throws {
        try await withServer { met in
            let objects = try #require(met.provider.privateObjects)
            let name = try #require(PrivateName(.checks, "one"))
            await #expect(throws: ProviderError.self) { try await objects.write([1], to: name, base: nil) }
            #expect(met.provider.privateObjects == nil)
        }
    }
}
