import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A mode that another machine gave, and of which nothing is known here, when the file is saved.
struct RightsTests {
    private static let base = "/remote.php/dav/files/u/"
    private static let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])

    private struct Server {
        /// What another machine has kept with the file, and gives it while the content is on its way.
        var kept = "1 644 1 2 5 v1"
        /// What is kept with what is aside.
        var aside = ""
        var isReplaced = false
    }

    /// What is kept with the file in the end. The mode is given while the content is sent.
    private func saved(
        _ traits: Set<String>, partWriting: PartWriting = .nothing, keepsRights: Bool = true
    ) async throws -> (kept: String, told: Metadata) {
        let state = Mutex(Server())
        let script: ScriptedServer.Script = { request in
            state.withLock { state in
                switch request.method {
                case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
                case "PROPFIND" where request.path == Self.base: return rows((Self.base, keepingCollection))
                case "PROPFIND":
                    let isFile = request.path == Self.base + "file"
                    let tag = state.isReplaced || !isFile ? "9" : "1"
                    let properties = """
                        <resourcetype/><getetag>"\(tag)"</getetag><getcontentlength>4</getcontentlength>\
                        <state xmlns="urn:promisefs">\(isFile ? state.kept : state.aside)</state>
                        """
                    let row = "<propstat><prop>\(properties)</prop><status>HTTP/1.1 200 OK</status></propstat>"
                    return rows((request.path, row))
                case "HEAD": return reply("200 OK", ["ETag: \"9\""], length: 4)
                case "LOCK": return reply("200 OK", ["Lock-Token: <urn:token>"])
                case "PUT":
                    state.kept = "1 600 1 2 5 v1"
                    return reply("201 Created", ["ETag: \"9\""])
                case "PROPPATCH":
                    let text = request.body.split(separator: "<state xmlns=\"urn:promisefs\">").last ?? ""
                    let kept = text.split(separator: "<").first.map(String.init) ?? ""
                    if request.path == Self.base + "file" { state.kept = kept } else { state.aside = kept }
                    return rows((request.path, "<propstat><prop/><status>HTTP/1.1 200 OK</status></propstat>"))
                case "MOVE":
                    state.isReplaced = true
                    // What is joined stays the same file, with what is kept with it.
                    if partWriting == .chunks { return reply("204 No Content", ["OC-ETag: \"9\""]) }
                    state.kept = state.aside
                    return reply("204 No Content")
                default: return reply("201 Created")
                }
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let all = traits.union(["keepsProperties", "honoursOverwrite"])
        let provider = try await provider(server, remembering: all, at: Self.base, partWriting: partWriting)
        let time = Timestamp(seconds: 7, nanoseconds: 0)
        var changes = ItemChanges(metadata: Metadata(mode: 0o644, owner: 1, group: 2, modificationTime: time))
        changes.keepsRights = keepsRights
        let item = try await provider.modify(
            Self.file, changes: changes, contents: try ConformanceSource(Array("text".utf8)), baseVersion: ContentVersion("1"))
        return (state.withLock { $0.kept }, item.metadata)
    }

    private static let servers: [(Set<String>, PartWriting)] = [
        // A lock, and a MOVE that keeps the tag, or gives another one (Apache).
        (["locks", "moveKeepsTag"], .nothing), (["locks"], .nothing), (["locks", "moveNeedsSourceLock"], .nothing),
        // No lock; a MOVE over the base version (sabre/dav); parts that are joined (Nextcloud).
        (["moveKeepsTag"], .nothing), (["moveKeepsTag", "movesOnlyOverMatching"], .nothing), (["joinsOverMatching"], .chunks),
    ]

    /// It was undone where the content goes aside before it is put in place: from 4 MiB on, and at
    /// Nextcloud always.
    @Test(arguments: servers) func aModeThatOthersGaveWhileMuchIsSentStays(traits: Set<String>, parts: PartWriting) async throws {
        let (kept, told) = try await saved(traits, partWriting: parts)
        #expect(kept == "1 600 1 2 7000000000 v9")
        #expect(told.mode == 0o600 && told.modificationTime == Timestamp(seconds: 7, nanoseconds: 0))
    }

    @Test(arguments: servers) func aModeThatWasGivenHereGoesWithTheContent(traits: Set<String>, parts: PartWriting) async throws {
        let (kept, told) = try await saved(traits, partWriting: parts, keepsRights: false)
        #expect(kept == "1 644 1 2 7000000000 v9")
        #expect(told.mode == 0o644)
    }
}
