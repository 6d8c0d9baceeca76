import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A server that this program starts itself, at another address each time, and that remembers what it saw.
struct RelayTests {
    private final class Relay: ServerRelay {
        let asked = Mutex<[[String]]>([])
        let port = Mutex<UInt16>(0)

        func station(lookingAt paths: [String]) async throws(ProviderError) -> ServerStation {
            asked.withLock { $0.append(paths) }
            let port = port.withLock { $0 }
            return ServerStation(origin: "http://127.0.0.1:\(port)", authorization: "Basic \(port)")
        }

        func take() -> [[String]] { asked.withLock { asked in (asked, asked = []).0 } }
    }

    private struct Sink: ContentSink {
        var size: UInt64? { 4 }
        func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {}
        func copy(
            from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
        ) throws(ProviderError) -> UInt64 { 0 }
    }

    private static let state = """
        {"subject": " 1,2 rclone:work:a", "locks": false, "listsTags": true, "keepsProperties": false, "putIsWhole": false,
        "moveKeepsTag": true, "tagsTellContent": false, "honoursOverwrite": true, "honoursConditionsOnPut": false,
        "lockMakesFile": false, "moveNeedsSourceLock": false, "putsOnlyNew": false, "hasRanges": true, "hasQuota": false,
        "tellsNews": false, "isGuess": false, "brokeOff": false, "partWriting": "nothing", "deletesOnlyMatching": false,
        "locksEndWithItem": true, "putTellsTag": false, "escapes": 0, "deletesOnlyTagged": false,
        "overwritesTwins": false, "foldsNames": false}
        """

    private static func server() -> ScriptedServer {
        ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1,2"])
            case "PROPFIND" where request.path == "/": rows(("/", collection))
            case "PROPFIND": listing(request.path, tag: "\"7\"")
            case "GET": reply("200 OK", ["ETag: \"7\""], "text")
            default: reply("201 Created")
            }
        }
    }

    @Test func aRequestGoesWhereTheServerIsNowAndTellsWhatItDependsOn() async throws {
        let folder = try TemporaryFolder("relay")
        try folder.write(Array(Self.state.utf8), to: "webdav-server.json", mode: 0o600)
        let (relay, first, second) = (Relay(), Self.server(), Self.server())
        defer { first.stop() }
        defer { second.stop() }
        relay.port.withLock { $0 = first.port }
        let provider = try WebDAVProvider(
            location: WebDAVLocation(relayed: "rclone:work:a"), credentials: CredentialSource(), stateFolder: folder.path(""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, relay: relay)
        try await provider.connect()
        let root = try await provider.root()
        #expect(provider.name == "rclone:work:a" && root.identifier == ItemIdentifier("rclone:work:a"))
        let head = first.requests.last ?? ""
        #expect(head.contains("Host: promisefs\r\n") && head.contains("Authorization: Basic \(first.port)\r\n"), "\(head)")
        #expect(!first.requests.contains { $0.hasPrefix("PUT") }, "what is known of a server is known at its next address")

        // The next one that is started: at another address, with another password.
        relay.port.withLock { $0 = second.port }
        _ = relay.take()
        let file = ItemReference(identifier: ItemIdentifier("/a%20b"), path: [FileName("a b")!])
        let top = ItemReference(identifier: root.identifier, path: [])
        let new = ItemChanges(place: (parent: top, name: FileName("c")!))
        _ = try await provider.modify(file, changes: new, contents: nil, baseVersion: ContentVersion("7"))
        #expect(relay.take().contains(["/a%20b", "/c"]), "a move depends on both places")
        #expect(second.requests.contains { $0.hasPrefix("MOVE /a%20b ") && $0.contains("Destination: http://promisefs/c\r\n") })

        // What it sends may be newer than what it has looked at, so it is looked at once more afterwards.
        try await provider.fetchContents(
            of: file, version: ContentVersion("7"), range: nil, into: Sink())
        #expect(relay.take() == [["/a%20b"], ["/a%20b"]])
        #expect(second.requests.last?.hasPrefix("PROPFIND /a%20b ") == true)
    }
}
