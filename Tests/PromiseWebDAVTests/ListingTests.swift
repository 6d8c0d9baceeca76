import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

struct ListingTests {
    private static let folder = ItemReference(identifier: ItemIdentifier("/d"), path: [FileName("d")!])

    /// A server whose folder `d` has `count` files, and whose answers about it end too soon by `missingByteCount`.
    private func server(count: Int, missingByteCount: Int) -> ScriptedServer {
        let file = """
            <propstat><prop><resourcetype/><getetag>"1"</getetag><getcontentlength>4</getcontentlength></prop>\
            <status>HTTP/1.1 200 OK</status></propstat>
            """
        let responses = (0..<count).map { "<response><href>/d/\($0)</href>\(file)</response>" }.joined()
        let own = "<response><href>/d/</href>\(collection)</response>"
        let body = "<multistatus xmlns=\"DAV:\">\(own)\(responses)</multistatus>"
        return ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): rows(("/", collection))
            default:
                reply("207 Multi-Status", ["Connection: close"], body, length: body.utf8.count + missingByteCount)
            }
        }
    }

    /// The parts that were handed on, and the rest; nil when listing failed.
    private func list(count: Int, missingByteCount: Int = 0) async throws -> (parts: [[Item]], rest: [Item]?) {
        let server = server(count: count, missingByteCount: missingByteCount)
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        let parts = SharedParts()
        let rest = try? await provider.enumerateAllItems(in: Self.folder) { items in parts.add(items) }
        return (parts.all, rest)
    }

    private final class SharedParts: Sendable {
        private let parts = Mutex<[[Item]]>([])
        var all: [[Item]] { parts.withLock { $0 } }
        func add(_ items: [Item]) { parts.withLock { $0.append(items) } }
    }

    @Test func whatHasComeOfALongListingIsHandedOnBeforeItsEnd() async throws {
        let (parts, rest) = try await list(count: 5_000, missingByteCount: 1)
        #expect(rest == nil, "an answer that is cut off is not the whole folder")
        #expect(parts.joined().count >= 1_000)
    }

    @Test func thePartsOfAListingAreTheFolder() async throws {
        let (parts, rest) = try await list(count: 5_000)
        #expect(parts.count > 1)
        let names = (Array(parts.joined()) + (rest ?? [])).map(\.name.display)
        #expect(names == (0..<5_000).map(String.init))
    }

    @Test func aShortListingComesAsAWhole() async throws {
        let (parts, rest) = try await list(count: 900)
        #expect(parts.isEmpty && rest?.count == 900)
    }
}
