import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// Folders whose server tells what is new in them (RFC 6578): those without news are not listed, and nothing new is missed.
struct NewsTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    /// A folder with one file, whose token counts the changes; `refusal` answers a REPORT instead.
    private final class Folder: Sendable {
        private struct State {
            var count = 1
            var refusal: String?
        }
        private let state = Mutex(State())

        func change() { state.withLock { $0.count += 1 } }
        func refuse(_ reply: String?) { state.withLock { $0.refusal = reply } }

        func answer(_ request: ScriptedServer.Request) -> String? {
            let (count, refusal) = state.withLock { ($0.count, $0.refusal) }
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND":
                let token = "<sync-token>token&amp;\(count)</sync-token>"
                let keeps = "<keeps xmlns=\"urn:promisefs\">1</keeps>"
                let properties = "<prop><resourcetype><collection/></resourcetype>\(token)\(keeps)</prop>"
                return rows(
                    ("/", "<propstat>\(properties)<status>HTTP/1.1 200 OK</status></propstat>"),
                    ("/file", "<propstat><prop><getetag>\(count)</getetag></prop><status>HTTP/1.1 200 OK</status></propstat>"))
            case "REPORT":
                if let refusal { return refusal }
                if request.body.contains("<sync-token>token&amp;\(count)</sync-token>") { return rows() }
                return rows(("/file", "<propstat><prop/><status>HTTP/1.1 200 OK</status></propstat>"))
            default: return reply("404 Not Found")
            }
        }
    }

    /// With what the probe would have found of a server that tells all.
    private func withProvider(
        _ folder: Folder, _ body: (WebDAVProvider, ScriptedServer) async throws -> Void
    ) async throws {
        let server = ScriptedServer { folder.answer($0) }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["tellsNews"])
        _ = try await provider.enumerateItems(in: root, page: nil)
        try await body(provider, server)
    }

    private func foldersToList(_ provider: WebDAVProvider) async throws -> Set<ItemIdentifier> {
        try await provider.changes(since: Anchor(rawValue: "look")).foldersToList
    }

    @Test func aFolderWithoutNewsIsNotListed() async throws {
        let folder = Folder()
        try await withProvider(folder) { provider, _ in
            for _ in 0..<2 {
                let found = try await foldersToList(provider)
                #expect(found.isEmpty)
            }
        }
    }

    /// Also when the listing that should bring them failed.
    @Test func newsAreToldUntilTheyWereListed() async throws {
        let folder = Folder()
        try await withProvider(folder) { provider, _ in
            folder.change()
            for _ in 0..<2 {
                let found = try await foldersToList(provider)
                #expect(found == [root.identifier])
            }
            _ = try await provider.enumerateItems(in: root, page: nil)
            let found = try await foldersToList(provider)
            #expect(found.isEmpty)
        }
    }

    @Test(arguments: [
        reply("412 Precondition Failed"), reply("403 Forbidden"), reply("409 Conflict"), reply("501 Not Implemented"),
        rows(("/", "<status>HTTP/1.1 507 Insufficient Storage</status>")),
    ])
    func aTokenThatIsRefusedOrAnAnswerThatIsCutOffMeansAListing(answer: String) async throws {
        let folder = Folder()
        try await withProvider(folder) { provider, _ in
            folder.refuse(answer)
            let found = try await foldersToList(provider)
            #expect(found == [root.identifier])
        }
    }

    @Test func aServerInTroubleIsAskedAgain() async throws {
        let folder = Folder()
        try await withProvider(folder) { provider, _ in
            folder.refuse(reply("503 Busy"))
            await #expect { _ = try await foldersToList(provider) } throws: {
                ($0 as? ProviderError)?.code == .retryAfter(.seconds(5))
            }
        }
    }
}
