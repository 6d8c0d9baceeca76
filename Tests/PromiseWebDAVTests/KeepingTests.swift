import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What is kept with items is looked for where there may be some, and found in the end wherever it is.
struct KeepingTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let folder = ItemReference(identifier: ItemIdentifier("/folder"), path: [FileName("folder")!])

    /// A root with a folder with a file. `says`: those that say that they hold something of ours, which the file is.
    private func withProvider(
        says: Set<String>, refusesProperties: Bool = false,
        _ body: (WebDAVProvider, _ requests: () -> [ScriptedServer.Request]) async throws -> Void
    ) async throws {
        let requests = Mutex<[ScriptedServer.Request]>([])
        let script: ScriptedServer.Script = { request in
            requests.withLock { $0.append(request) }
            func content(_ folder: String) -> String { says.contains(folder) ? keepingCollection : collection }
            let kept = "<getetag>1</getetag><getcontentlength>4</getcontentlength>"
                + "<state xmlns=\"urn:promisefs\">1 750 1 2 5 v1</state>"
            let plain = "<getetag>1</getetag><getcontentlength>4</getcontentlength>"
            func file(_ properties: String) -> String {
                "<propstat><prop>\(properties)</prop><status>HTTP/1.1 200 OK</status></propstat>"
            }
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"):
                return request.head.contains("Depth: 0") || request.head.contains("depth: 0")
                    ? rows(("/", content("/"))) : rows(("/", content("/")), ("/folder/", content("/folder/")))
            case ("PROPFIND", "/folder/"):
                return rows(
                    ("/folder/", content("/folder/")), ("/folder/file", file(request.body.contains("state") ? kept : plain)))
            case ("PROPPATCH", _) where refusesProperties: return reply("403 Forbidden")
            case ("PUT", _): return reply("201 Created")
            case ("GET", _): return reply("200 OK", ["ETag: \"1\""])
            default: return rows()
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["putIsWhole", "putsOnlyNew", "keepsProperties"])
        try await body(provider) { requests.withLock { $0 } }
    }

    private func file(_ provider: WebDAVProvider) async throws -> Item {
        try #require(try await provider.enumerateItems(in: folder, page: nil).items.first)
    }

    @Test func aFolderThatSaysNothingIsListedWithoutIt() async throws {
        try await withProvider(says: []) { provider, requests in
            let first = try await provider.enumerateItems(in: root, page: nil).items
            #expect(first.allSatisfy { $0.isGuess })
            let guessed = try await file(provider)
            #expect(guessed.isGuess && guessed.metadata.mode == 0o644)
            #expect(requests().suffix(2).allSatisfy { $0.head.contains("1") && !$0.body.contains("state") })
            // Another program may have moved it there.
            let found = try await file(provider)
            #expect(!found.isGuess && found.metadata.mode == 0o750)
        }
    }

    @Test func aFolderThatSaysSoIsAskedAtOnce() async throws {
        try await withProvider(says: ["/", "/folder/"]) { provider, requests in
            _ = try await provider.enumerateItems(in: root, page: nil)
            let count = requests().count
            let found = try await file(provider)
            #expect(!found.isGuess && found.metadata.mode == 0o750)
            #expect(requests().count == count + 1)
        }
    }

    /// Another machine made a folder and kept something in it, after the root was looked at and before it was listed. Its links
    /// were files then, and a copy of them too.
    @Test(arguments: [true, false])
    func whatAnotherMachineKeptSinceTheServerToldOfAFolderIsSeenAtOnce(isInRoot: Bool) async throws {
        let isKept = Mutex(false)
        func row(_ keeps: Bool, _ day: String) -> String {
            let property = keeps ? "<keeps xmlns=\"urn:promisefs\">1</keeps>" : ""
            return """
                <propstat><prop><resourcetype><collection/></resourcetype><getlastmodified>Sun, \(day) Nov 1994 08:49:37 GMT\
                </getlastmodified>\(property)</prop><status>HTTP/1.1 200 OK</status></propstat>
                """
        }
        let (old, new) = (row(false, "06"), row(false, "13"))
        let keeping = row(true, "13")
        let script: ScriptedServer.Script = { request in
            let asks = request.body.contains("keeps")
            let folder = isKept.withLock { $0 } ? (asks ? keeping : new) : old
            let state = asks ? "<state xmlns=\"urn:promisefs\">1 777 1 2 5 v1 lthere</state>" : ""
            let link = "<propstat><prop><getetag>1</getetag><getcontentlength>5</getcontentlength>\(state)</prop>"
                + "<status>HTTP/1.1 200 OK</status></propstat>"
            let isOne = request.head.lowercased().contains("depth: 0")
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): return isOne ? rows(("/", folder)) : rows(("/", folder), ("/folder/", folder))
            default: return isOne ? rows(("/folder/", folder)) : rows(("/folder/", folder), ("/folder/link", link))
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["keepsProperties"])
        if isInRoot { _ = try await provider.enumerateItems(in: root, page: nil) }
        isKept.withLock { $0 = true }
        if !isInRoot { _ = try await provider.enumerateItems(in: root, page: nil) }
        let found = try await file(provider)
        #expect(found.kind == .link && found.target == Array("there".utf8) && found.metadata.mode == 0o777 && !found.isGuess)
    }

    /// After a start known folders are listed in any order.
    @Test func aFolderWhoseParentWasNotListedIsLookedAt() async throws {
        try await withProvider(says: ["/", "/folder/"]) { provider, _ in
            let found = try await file(provider)
            #expect(!found.isGuess && found.metadata.mode == 0o750)
        }
    }

    @Test(arguments: [false, true]) func aFolderSaysSoBeforeSomethingIsKeptThere(isRefused: Bool) async throws {
        try await withProvider(says: [], refusesProperties: isRefused) { provider, requests in
            let metadata = Metadata(mode: 0o600, owner: 1, group: 2, modificationTime: .zero)
            let item = NewItem(name: FileName("new")!, kind: .file, metadata: metadata)
            for _ in 0..<2 { _ = try? await provider.create(item, in: folder, contents: nil) }
            let said = requests().filter { $0.method == "PROPPATCH" && $0.body.contains("keeps") }.map(\.path)
            #expect(said == ["/", "/folder/"])
            let methods = requests().map(\.method)
            let (saying, putting) = (methods.firstIndex(of: "PROPPATCH") ?? .max, methods.firstIndex(of: "PUT") ?? -1)
            #expect(saying < putting)
        }
    }
}
