import Foundation
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What a server does that means harm, or is out of its mind: docs/SECURITY.md names each.
struct HostileServerTests {
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let metadata = Metadata(
        mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))

    private func withProvider(
        credentials: CredentialSource = CredentialSource(), _ script: @escaping ScriptedServer.Script,
        _ body: (WebDAVProvider, ScriptedServer) async throws -> Void
    ) async throws {
        let server = ScriptedServer(script)
        defer { server.stop() }
        let location = try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/")
        let provider = try WebDAVProvider(
            location: location, credentials: credentials, stateFolder: nil, mayProbe: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await body(provider, server)
    }

    private func error(_ body: () async throws -> Void) async -> ProviderError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? ProviderError
        }
    }

    private static func content(_ properties: String) -> String {
        "<propstat><prop><resourcetype/>\(properties)</prop><status>HTTP/1.1 200 OK</status></propstat>"
    }

    /// Lengths that are none, and that no file has.
    static let impossible = [
        "", "-1", "x", "1e3", "1152921504606846977", "9223372036854775808",
        "18446744073709551615", "99999999999999999999",
    ]

    @Test(arguments: impossible) func aSizeThatCannotBeIsRefusedAndNotZero(size: String) async throws {
        let row = HostileServerTests.content("<getetag>\"1\"</getetag><getcontentlength>\(size)</getcontentlength>")
        let good = HostileServerTests.content("<getetag>\"1\"</getetag><getcontentlength>4</getcontentlength>")
        let script: ScriptedServer.Script = { request in
            if request.method == "HEAD" { return reply("404 Not Found") }
            return request.path == "/file"
                ? rows(("/file", row)) : rows(("/", collection), ("/file", row), ("/good", good))
        }
        try await withProvider(script) { provider, _ in
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.name.display) == ["good"])
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .permanent && found?.message.contains("size") == true)
        }
    }

    @Test func aSizeThatAListingDoesNotTellIsAskedFor() async throws {
        let script: ScriptedServer.Script = { request in
            if request.method == "HEAD" { return reply("200 OK", ["ETag: \"1\""], length: 7) }
            return rows(("/", collection), ("/file", HostileServerTests.content("<getetag>\"1\"</getetag>")))
        }
        try await withProvider(script) { provider, _ in
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.size) == [7])
        }
    }

    /// Neither a time that is missing nor one that cannot be is the epoch.
    @Test(arguments: ["", "yesterday", "Sun, 06 Nov 9999 08:49:37 GMT", "Thu, 01 Jan 1600 00:00:00 GMT"])
    func aTimeThatIsNotToldIsNotTheEpoch(time: String) async throws {
        let row = HostileServerTests.content(
            "<getetag>\"1\"</getetag><getcontentlength>4</getcontentlength><getlastmodified>\(time)</getlastmodified>")
        try await withProvider({ _ in rows(("/", collection), ("/file", row)) }) { provider, _ in
            let item = try #require(try await provider.enumerateItems(in: root, page: nil).items.first)
            #expect(item.isGuess && item.metadata.modificationTime.seconds > 1_500_000_000)
        }
    }

    /// The body is as long as it is; a length that no file has is not believed, and nothing stops.
    @Test(arguments: ["9223372036854775808", "18446744073709551615", "99999999999999999999"])
    func aContentLengthThatCannotBeEndsTheFetchAndNothingElse(length: String) async throws {
        let script: ScriptedServer.Script = { _ in
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(length)\r\nConnection: close\r\n\r\ntext"
        }
        try await withProvider(script) { provider, _ in
            let found = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: nil, into: ConformanceSink())
            }
            #expect(found != nil)
        }
    }

    @Test(arguments: [
        "bytes 0-9223372036854775807/9223372036854775808", "bytes 18446744073709551615-1/2",
        "bytes -1-1/x", "bytes",
    ])
    func aContentRangeThatCannotBeIsRefused(range: String) async throws {
        let script: ScriptedServer.Script = { _ in
            reply("206 Partial Content", ["ETag: \"1\"", "Content-Range: \(range)", "Connection: close"], "text")
        }
        try await withProvider(script) { provider, _ in
            let found = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: ByteRange(1, 9), into: ConformanceSink())
            }
            #expect(found != nil)
        }
    }

    /// A file of ten bytes cost 14 GiB of memory, as the body had no end.
    @Test(arguments: [nil, ByteRange(0, 10)] as [ByteRange?])
    func aBodyThatGoesOnBehindTheContentIsNotReadOn(range: ByteRange?) async throws {
        let body = String(repeating: "x", count: 32 << 20)
        let row = HostileServerTests.content(
            "<getcontentlength>10</getcontentlength><getetag>\"1\"</getetag>")
        let part = range == nil ? "200 OK" : "206 Partial Content\r\nContent-Range: bytes 0-9/10"
        let script: ScriptedServer.Script = { request in
            if request.method == "PROPFIND" { return rows(("/file", row)) }
            return "HTTP/1.1 \(part)\r\nETag: \"1\"\r\nConnection: close\r\n\r\n\(body)"
        }
        try await withProvider(script) { provider, server in
            _ = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: range, into: ConformanceSink())
            }
            for _ in 0..<2_000 where server.sentByteCount < 64 << 10 {
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect((64 << 10..<16 << 20).contains(server.sentByteCount))
        }
    }

    @Test(arguments: ["PROPFIND", "PUT", "DELETE", "MKCOL"])
    func anAnswerWithoutAnEndIsNotReadOn(method: String) async throws {
        let page = String(repeating: " ", count: 12 << 20)
        let script: ScriptedServer.Script = { request in
            if request.method == method {
                return "HTTP/1.1 207 Multi-Status\r\nConnection: close\r\n\r\n\(page)"
            }
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1"])
            case "PROPFIND": return request.path == "/file" ? listing("/file") : reply("404 Not Found")
            // Where drafts are kept.
            case "MKCOL": return reply("201 Created")
            default: return reply("204 No Content")
            }
        }
        try await withProvider(script) { provider, server in
            let found = await error {
                switch method {
                case "PUT":
                    let contents = try MemorySource(Array("text".utf8))
                    _ = try await provider.modify(
                        file, changes: ItemChanges(), contents: contents, baseVersion: ContentVersion("1"))
                case "DELETE": try await provider.delete(file, baseVersion: ContentVersion("1"))
                case "MKCOL":
                    let item = NewItem(name: FileName("new")!, kind: .folder, metadata: metadata)
                    _ = try await provider.create(item, in: root, contents: nil)
                default: _ = try await provider.item(for: file)
                }
            }
            #expect(found?.message.contains("longer than 4 MiB") == true, "\(String(describing: found))")
        }
    }

    /// Five million empty rows are 64 MiB, and became more than a gibibyte of them.
    @Test func anAnswerWithMoreRowsThanCanBeIsRefused() {
        func rows(_ count: Int) -> [ResourceStatus]? {
            let rows = String(repeating: "<response/>", count: count)
            return MultiStatusParser.parse(
                Data("<multistatus xmlns=\"DAV:\">\(rows)</multistatus>".utf8))
        }
        #expect(rows(MultiStatusParser.rowCountMax)?.count == MultiStatusParser.rowCountMax)
        #expect(rows(MultiStatusParser.rowCountMax + 1) == nil)
    }

    /// A resource remembered each status that it was refused with, of any number.
    @Test func aStatusHasThreeDigits() {
        let refused = (0..<5_000).map { "<propstat><status>HTTP/1.1 \(1_000 + $0) No</status></propstat>" }
        let body = "<response><href>/a</href>" + refused.joined() + "</response>"
        let document = "<multistatus xmlns=\"DAV:\">\(body)</multistatus>"
        let found = MultiStatusParser.parse(Data(document.utf8))
        #expect(found?.count == 1 && found?.first?.refusals.isEmpty == true)
    }

    /// Only an opened tag is small; a parser keeps them all, 400 MiB of 5.
    @Test(arguments: [
        String(repeating: "<a>", count: 100_000),
        "<multistatus xmlns=\"DAV:\">" + String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
            + "</multistatus>",
        "<multistatus xmlns=\"DAV:\"><response><href>" + String(repeating: "a", count: 2 << 20)
            + "</href></response></multistatus>",
        "<multistatus xmlns=\"DAV:\"><response>" + "<b " + (0..<100).map { "c\($0)=\"\"" }.joined(separator: " ")
            + "/></response></multistatus>",
        "<multistatus xmlns=\"DAV:\"><" + String(repeating: "a", count: 2 << 20) + "/></multistatus>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><multistatus xmlns=\"DAV:\"><response><href>&b;</href></response></multistatus>",
    ])
    func anAnswerBeyondAllMeasureIsRefused(document: String) async throws {
        #expect(MultiStatusParser.parse(Data(document.utf8)) == nil)
        try await withProvider({ _ in reply("207 Multi-Status", [], document) }) { provider, _ in
            let found = await error { _ = try await provider.enumerateItems(in: root, page: nil) }
            #expect(found?.code == .retry)
        }
    }

    /// A login page says how long it is, too.
    @Test func theLengthOfAPageIsNotTheSizeOfAFile() async throws {
        let script: ScriptedServer.Script = { request in
            if request.method == "HEAD" { return reply("200 OK", ["Content-Type: text/html"], length: 153) }
            return rows(("/", collection), ("/file", HostileServerTests.content("<getetag>\"1\"</getetag>")))
        }
        try await withProvider(script) { provider, _ in
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.isEmpty)
        }
    }

    /// Rows before that of the folder itself were kept, up to a gibibyte of text and several of memory.
    @Test func aListingThatNeverSaysWhoseItIsIsNotKept() async throws {
        let long = String(repeating: "x", count: 240)
        let content = HostileServerTests.content("<getetag>\"1\"</getetag><getcontentlength>1</getcontentlength>")
        var text = "<?xml version=\"1.0\"?><multistatus xmlns=\"DAV:\">"
        for number in 0..<100_000 { text += "<response><href>/\(number)\(long)</href>\(content)</response>" }
        let document = text + "</multistatus>"
        try await withProvider({ _ in reply("207 Multi-Status", [], document) }) { provider, _ in
            let found = await error { _ = try await provider.enumerateAllItems(in: root) { _ in } }
            #expect(found?.code == .permanent)
            #expect(found?.message.contains("does not begin with the folder") == true)
        }
    }

    /// A server in the place of ours knows nothing: a removal that it answered with 404 was taken for done, so that the file came
    /// back, and for a sign that what else it did not know was gone.
    @Test(arguments: [true, false]) func whatIsRemovedIsGoneWhereTheServerShowsItsRoot(isOurs: Bool) async throws {
        let script: ScriptedServer.Script = { request in
            request.method == "PROPFIND" && request.path == "/" && isOurs ? rows(("/", collection)) : reply("404 Not Found")
        }
        try await withProvider(script) { provider, _ in
            let found = await error { try await provider.delete(file, baseVersion: ContentVersion("1")) }
            #expect(found?.code == (isOurs ? nil : .retry))
            let folder = await error { try await provider.delete(file, baseVersion: nil) }
            #expect(folder?.code == (isOurs ? nil : .retry))
        }
    }

    /// An answer was waited for ten minutes where nobody was there any more to give it.
    @Test func aConnectionWhoseOtherEndMayVanishIsWatchedByTheKernel() async throws {
        let state = Mutex((port: 0, timers: [String]()))
        let script: ScriptedServer.Script = { _ in
            for _ in 0..<2_000 where state.withLock({ !$0.timers.contains("02") }) {
                state.withLock { $0.timers = HostileServerTests.timers(to: $0.port) }
                usleep(10_000)
            }
            return rows(("/", collection))
        }
        try await withProvider(script) { provider, server in
            state.withLock { $0.port = Int(server.port) }
            _ = try await provider.enumerateItems(in: root, page: nil)
            // A keepalive timer, by /proc/net/tcp of the kernel's documentation.
            #expect(state.withLock { $0.timers.contains("02") })
        }
    }

    /// Of established connections to a port of this machine.
    private static func timers(to port: Int) -> [String] {
        let text = readSmallFile(Array("/proc/net/tcp".utf8), countMax: 16 << 20) ?? []
        let fields = String(decoding: text, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
        let ours = fields.filter { $0.count > 5 && $0[3] == "01" && Int($0[2].suffix(4), radix: 16) == port }
        return ours.map { String($0[5].prefix(2)) }
    }
}
