import Logging
import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What servers do seldom: nothing wrong is believed, nothing half is taken for whole, and errors say what to do.
struct ServerFaultTests {
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])

    private func withProvider(
        credentials: CredentialSource = CredentialSource(), mayProbe: Bool = true, _ script: @escaping ScriptedServer.Script,
        _ body: (WebDAVProvider, ScriptedServer) async throws -> Void
    ) async throws {
        let server = ScriptedServer(script)
        defer { server.stop() }
        let location = try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/")
        let provider = try WebDAVProvider(
            location: location, credentials: credentials, stateFolder: nil, mayProbe: mayProbe,
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

    private func fetch(_ provider: WebDAVProvider, _ range: ByteRange? = nil) async throws -> [UInt8] {
        let sink = ConformanceSink()
        try await provider.fetchContents(of: file, version: ContentVersion("1"), range: range, into: sink)
        return sink.bytes
    }

    @Test func contentOfAnotherVersionIsStaleAndNotTaken() async throws {
        try await withProvider({ _ in reply("200 OK", ["ETag: \"2\""], "text") }) { provider, _ in
            #expect(await error { _ = try await fetch(provider) }?.code == .stale)
        }
    }

    /// One item, as the first row says it is.
    @Test func aNameThatIsListedTwiceIsOneItem() async throws {
        @Sendable func content(_ tag: String) -> String {
            "<propstat><prop><resourcetype/><getetag>\"\(tag)\"</getetag>"
                + "<getcontentlength>4</getcontentlength></prop><status>HTTP/1.1 200 OK</status></propstat>"
        }
        let script: ScriptedServer.Script = { _ in
            rows(
                ("/", collection), ("/a", content("1")), ("/b/", collection), ("/a", content("2")), ("/b", collection),
                ("/", collection))
        }
        try await withProvider(mayProbe: false, script) { provider, _ in
            let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.name.display) == ["a", "b"] && items.first?.version == ContentVersion("1"))
        }
    }

    @Test func aWeakTagIsTheSameVersion() async throws {
        try await withProvider({ _ in reply("200 OK", ["ETag: W/\"1\""], "text") }) { provider, _ in
            let found = try await fetch(provider)
            #expect(found == Array("text".utf8))
        }
    }

    @Test func aBodyThatBreaksOffIsTriedAgain() async throws {
        try await withProvider({ _ in reply("200 OK", ["ETag: \"1\"", "Connection: close"], "te", length: 4) }) { provider, _ in
            #expect(await error { _ = try await fetch(provider) }?.code == .retry)
        }
    }

    /// As Nextcloud and ownCloud send it. What is not known is not compared, nor is a part.
    @Test(arguments: [
        ("SHA1:372ea08cab33e71c02c651dbc83a474d32c676ea MD5:1cb251ec0d568de6a929b520c4aed8d1", nil),
        ("ADLER32:045d01c1 MD5:1cb251ec0d568de6a929b520c4aed8d1", nil),
        ("MD5:00000000000000000000000000000000", ProviderError.Code.corrupted),
        ("SHA256:\(String(repeating: "0", count: 64)) MD5:1cb251ec0d568de6a929b520c4aed8d1", .corrupted),
        ("MD5:nonsense", nil), ("", nil),
    ])
    func contentThatHasNotTheChecksumTheServerSaysIsCorrupted(checksum: String, code: ProviderError.Code?) async throws {
        let script: ScriptedServer.Script = { _ in reply("200 OK", ["ETag: \"1\"", "OC-Checksum: \(checksum)"], "text") }
        try await withProvider(script) { provider, _ in
            #expect(await error { _ = try await fetch(provider) }?.code == code)
            let part = try await fetch(provider, ByteRange(1, 3))
            #expect(part == [0, UInt8(ascii: "e"), UInt8(ascii: "x")])
        }
    }

    @Test func aServerThatIgnoresRangesSendsNoByteTooMuch() async throws {
        try await withProvider({ _ in reply("200 OK", ["ETag: \"1\""], "text") }) { provider, _ in
            let found = try await fetch(provider, ByteRange(1, 3))
            #expect(found == [0, UInt8(ascii: "e"), UInt8(ascii: "x")])
        }
    }

    /// The bytes of a range were cut out of the compressed ones, which are no fewer of what cannot be
    /// compressed.
    @Test(arguments: [nil, ByteRange(1, 3)] as [ByteRange?])
    func whatIsCompressedOnItsWayIsNotTakenForTheContent(range: ByteRange?) async throws {
        let script: ScriptedServer.Script = { request in
            guard request.head.lowercased().contains("accept-encoding: identity") else { return reply("400 No", [], "") }
            return "HTTP/1.1 200 OK\r\nETag: W/\"1\"\r\nContent-Encoding: gzip\r\n"
                + "Connection: close\r\n\r\ncompressed text"
        }
        try await withProvider(script) { provider, _ in
            let sink = SizedSink(size: 4)
            let found = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: range, into: sink)
            }
            #expect(found?.code == .permanent && found?.message.contains("compressed") == true)
            #expect(sink.wrapped.bytes.isEmpty)
        }
    }

    /// A server may say of what is stored compressed that it is so (Apache, of `a.tar.gz`).
    @Test(arguments: [nil, ByteRange(1, 3)] as [ByteRange?])
    func whatIsStoredCompressedIsTheContent(range: ByteRange?) async throws {
        let script: ScriptedServer.Script = { _ in
            reply("200 OK", ["ETag: \"1\"", "Content-Encoding: x-gzip"], "text")
        }
        try await withProvider(script) { provider, _ in
            let sink = SizedSink(size: 4)
            try await provider.fetchContents(
                of: file, version: ContentVersion("1"), range: range, into: sink)
            let part = Array("text".utf8)[(range.map { 1..<Int($0.upper) } ?? 0..<4)]
            #expect(sink.wrapped.bytes.suffix(part.count) == part)
        }
    }

    @Test func aRangeIsNotCutOutOfABodyOfAnotherSize() async throws {
        try await withProvider({ _ in reply("200 OK", ["ETag: \"1\""], "another text") }) { provider, _ in
            let sink = SizedSink(size: 4)
            let found = await error {
                try await provider.fetchContents(
                    of: file, version: ContentVersion("1"), range: ByteRange(1, 3), into: sink)
            }
            #expect(found?.code == .retry && sink.wrapped.bytes.isEmpty)
        }
    }

    @Test func anotherRangeThanAskedForIsNotBelieved() async throws {
        let script: ScriptedServer.Script = { _ in
            reply("206 Partial Content", ["ETag: \"1\"", "Content-Range: bytes 0-1/4"], "te")
        }
        try await withProvider(script) { provider, _ in
            #expect(await error { _ = try await fetch(provider, ByteRange(2, 4)) }?.code == .retry)
        }
    }

    /// A listing that is cut off would look like deleted files.
    @Test func aListingThatIsNotWholeIsTriedAgain() async throws {
        let script: ScriptedServer.Script = { _ in
            reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\"><response><href>/</href></response>")
        }
        try await withProvider(script) { provider, _ in
            #expect(await error { _ = try await provider.root() }?.code == .retry)
        }
    }

    /// What is not there is believed to be deleted, so the server must say so, of this item.
    @Test(arguments: [
        ("/other", "", ProviderError.Code.retry), ("/file", "<status>HTTP/1.1 403 Forbidden</status>", .refused),
        ("/file", "<status>HTTP/1.1 500 Oops</status>", .retry), ("/file", "<status>HTTP/1.1 404 Not Found</status>", .notFound),
        (
            "/file", "<propstat><prop><getetag/></prop><status>HTTP/1.1 503 Busy</status></propstat>",
            .retryAfter(.seconds(5))
        ),
    ])
    func onlyWhatTheServerSaysIsGoneIsGone(reference: String, content: String, code: ProviderError.Code) async throws {
        try await withProvider({ _ in rows((reference, content)) }) { provider, _ in
            #expect(await error { _ = try await provider.item(for: file) }?.code == code)
        }
    }

    private let folder = ItemReference(identifier: ItemIdentifier("/folder"), path: [FileName("folder")!])

    /// DELETE would take it with the folder.
    @Test(arguments: ["%FF", "a%2Fb", "locked"]) func aFolderWithWhatCannotBeShownIsNotDeleted(name: String) async throws {
        let script: ScriptedServer.Script = { request in
            guard request.method == "PROPFIND" else { return reply("204 No Content") }
            return rows(("/folder/", collection), ("/folder/\(name)", "<status>HTTP/1.1 403 Forbidden</status>"))
        }
        try await withProvider(script) { provider, server in
            let version = ContentVersion("folder")
            #expect(await error { try await provider.delete(folder, baseVersion: version) }?.code == .conflict)
            #expect(!server.requests.contains { $0.hasPrefix("DELETE") })
        }
    }

    @Test func aFolderThatBecameAFileIsNotDeletedNorTheReverse() async throws {
        let script: ScriptedServer.Script = { request in
            guard request.method == "PROPFIND" else { return reply("204 No Content") }
            return request.path.hasPrefix("/folder") ? rows(("/folder/", collection)) : listing("/file")
        }
        try await withProvider(script) { provider, server in
            let version = ContentVersion("folder")
            #expect(await error { try await provider.delete(file, baseVersion: version) }?.code == .conflict)
            #expect(await error { try await provider.delete(folder, baseVersion: ContentVersion("1")) }?.code == .conflict)
            #expect(!server.requests.contains { $0.hasPrefix("DELETE") })
        }
    }

    /// Taken for done, the item would come back as something new; taken for a conflict, a folder would.
    @Test(arguments: [
        ("DELETE", "409 Conflict", ProviderError.Code.refused), ("DELETE", "404 Not Found", .refused),
        ("DELETE", "403 Forbidden", .refused), ("DELETE", "423 Locked", .retryAfter(.seconds(2))),
        ("DELETE", "207 Multi-Status", .retryAfter(.seconds(2))), ("LOCK", "404 Not Found", .refused),
        ("LOCK", "409 Conflict", .refused), ("LOCK", "423 Locked", .retryAfter(.seconds(2))), ("LOCK", "403 Forbidden", .refused),
    ])
    func aDeletionThatIsRefusedIsNotTakenForDone(method: String, status: String, code: ProviderError.Code) async throws {
        let script: ScriptedServer.Script = { request in
            if request.method == method { return reply(status) }
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1,2"])
            case "LOCK": return reply("200 OK", ["Lock-Token: <urn:token>"])
            case "PROPFIND":
                return request.path == "/" ? rows(("/", collection))
                    : request.path.hasPrefix("/folder") ? rows(("/folder/", collection)) : listing("/file")
            default: return reply("204 No Content")
            }
        }
        try await withProvider(mayProbe: false, script) { provider, _ in
            try await provider.connect()
            #expect(await error { try await provider.delete(file, baseVersion: ContentVersion("1")) }?.code == code)
            let found = await error { try await provider.delete(folder, baseVersion: ContentVersion("folder")) }
            #expect(found?.code == code)
        }
    }

    /// The engine brings a folder back that is in conflict.
    @Test func aLockThatWasLostIsNoConflictOfAFolder() async throws {
        let script: ScriptedServer.Script = { request in
            request.method == "PROPFIND" ? rows(("/folder/", collection)) : reply("412 Precondition Failed")
        }
        try await withProvider(script) { provider, _ in
            #expect(await error { try await provider.delete(folder, baseVersion: ContentVersion("folder")) }?.code == .retry)
        }
    }

    @Test func aMoveOfAnOldVersionIsAConflictAndNothingIsMoved() async throws {
        try await withProvider({ _ in listing("/file", tag: "\"2\"") }) { provider, server in
            let changes = ItemChanges(place: (ItemReference(identifier: ItemIdentifier("/"), path: []), FileName("moved")!))
            let found = await error {
                _ = try await provider.modify(file, changes: changes, contents: nil, baseVersion: ContentVersion("1"))
            }
            #expect(found?.code == .conflict)
            #expect(!server.requests.contains { $0.hasPrefix("MOVE") })
        }
    }

    @Test func aStoreWithoutALimitHasAQuota() async throws {
        let available = "<quota-available-bytes>\(UInt64.max)</quota-available-bytes>"
        let properties = "<prop>\(available)<quota-used-bytes>5</quota-used-bytes></prop>"
        let content = "<propstat>\(properties)<status>HTTP/1.1 200 OK</status></propstat>"
        try await withProvider({ _ in rows(("/", content)) }) { provider, _ in
            let quota = try await provider.quota()
            #expect(quota == Quota(total: .max, available: .max))
        }
    }

    /// What it does not do now it may do later.
    @Test(arguments: ["503 Busy", "423 Locked", "507 Full", "401 Unauthorized", "500 Oops"])
    func aServerInTroubleIsNotTakenForOneThatCanDoLittle(status: String) async throws {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1,2"])
            case "PROPFIND": rows(("/", collection))
            case "MKCOL": reply("201 Created")
            default: reply(status)
            }
        }
        try await withProvider(script) { provider, _ in
            try await provider.connect()
            #expect(provider.limitations.first?.contains("trouble") == true)
        }
    }

    @Test func aServerThatIsBusySaysForHowLong() async throws {
        try await withProvider({ _ in reply("503 Busy", ["Retry-After: 3"]) }) { provider, _ in
            #expect(await error { _ = try await provider.item(for: file) }?.code == .retryAfter(.seconds(3)))
        }
    }

    @Test func aRedirectOnTheSameServerIsFollowedWithTheCredentials() async throws {
        let script: ScriptedServer.Script = { request in
            guard request.head.contains("Authorization") else {
                return reply("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""])
            }
            return request.path == "/file" ? reply("301 Moved", ["Location: /other"]) : listing("/file")
        }
        let credentials = CredentialSource(given: .password(user: "u", Secret("p")))
        try await withProvider(credentials: credentials, script) { provider, server in
            let found = try await provider.item(for: file).size
            #expect(found == 4)
            #expect(server.requests.last?.contains("Authorization: Basic dTpw") == true)
        }
    }

    @Test func aRedirectElsewhereTakesNoCredentialsAlong() async throws {
        let script: ScriptedServer.Script = { _ in
            reply("302 Found", ["Location: http://user:tops3cret@example.com/?key=tops3cret"])
        }
        try await withProvider(script) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .authenticate && found?.message.contains("example.com") == true)
            #expect(found?.message.contains("tops3cret") == false)
        }
    }

    /// It was a refusal of the item that was sent, as if another server could be told it in its name.
    @Test(arguments: [4, 20_000]) func aServerThatHasMovedIsTheDomainsTroubleAndNotAnItems(byteCount: Int) async throws {
        let hasMoved = Mutex(false)
        let script: ScriptedServer.Script = { request in
            if hasMoved.withLock({ $0 }) { return reply("308 Moved", ["Location: https://example.com/dav/"]) }
            return request.method == "OPTIONS" ? reply("200 OK", ["DAV: 1", "Server: s"]) : rows(("/", collection))
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["putIsWhole", "putsOnlyNew", "moveKeepsTag", "honoursOverwrite"])
        hasMoved.withLock { $0 = true }
        let item = NewItem(
            name: FileName("file")!, kind: .file,
            metadata: Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(nanoseconds: 5)))
        let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
        let source = try ConformanceSource([UInt8](repeating: UInt8(ascii: "x"), count: byteCount))
        let found = await error { _ = try await provider.create(item, in: root, contents: source) }
        #expect(found?.code == .authenticate, "\(String(describing: found))")
        #expect(found?.message.contains("mount that address. What is not sent yet waits") == true)
        #expect(await error { _ = try await provider.root() }?.message == found?.message)
    }

    @Test func oneItemThatIsKeptElsewhereIsNoTroubleOfTheDomain() async throws {
        let script: ScriptedServer.Script = { request in
            request.path == "/file"
                ? reply("302 Found", ["Location: https://example.com/x?key=tops3cret"]) : rows(("/", collection))
        }
        try await withProvider(script) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .permanent && found?.message.contains("keeps it elsewhere") == true)
            #expect(found?.message.contains("tops3cret") == false)
        }
    }

    @Test func credentialsThatWereMendedAreTakenWithoutANewMount() async throws {
        let folder = try TemporaryFolder("credentials")
        func write(_ token: String) throws {
            try folder.write(Array("[127.0.0.1]\ntoken = \(token)\n".utf8), to: "credentials", mode: 0o600)
        }
        try write("wrong")
        let source = CredentialSource(file: folder.path("credentials"), names: ["127.0.0.1"])
        let script: ScriptedServer.Script = { request in
            request.head.contains("Authorization: Bearer right")
                ? listing("/file") : reply("401 Unauthorized", ["WWW-Authenticate: Bearer"])
        }
        try await withProvider(credentials: source, script) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .authenticate && found?.message.contains("wrong\"") == false)
            try write("right")
            let size = try await provider.item(for: file).size
            #expect(size == 4)
        }
    }

    @Test func nobodyListeningIsOffline() async throws {
        let port = DeafPort()
        defer { withExtendedLifetime(port) {} }
        let location = try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(port.number)/")
        let provider = try WebDAVProvider(
            location: location, credentials: CredentialSource(), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(await error { _ = try await provider.root() }?.code == .offline)
    }

    @Test func aConnectionThatIsCutIsTriedAgain() async throws {
        try await withProvider({ _ in nil }) { provider, _ in
            #expect(await error { _ = try await fetch(provider) }?.code == .retry)
        }
    }

    @Test func whatIsNoWebDAVServerIsSaid() async throws {
        try await withProvider({ _ in reply("200 OK", [], "<html></html>") }) { provider, _ in
            let found = await error { try await provider.connect() }
            #expect(found?.code == .permanent && found?.message.contains("not a WebDAV folder") == true)
        }
    }
}

/// Knows how large the content is.
private struct SizedSink: ContentSink {
    let wrapped = ConformanceSink()
    let size: UInt64?

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
        try wrapped.write(bytes, at: offset)
    }

    func copy(
        from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
    ) throws(ProviderError) -> UInt64 {
        try wrapped.copy(from: descriptor, at: sourceOffset, to: offset, count: count)
    }
}
