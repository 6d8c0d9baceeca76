import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What servers other than Apache do, as it was seen with nginx, lighttpd and sabre/dav.
struct OtherServerTests {
    private static let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private static let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private static let modified = "Sun, 22 Nov 2026 09:39:31 GMT"

    private func fetch(
        _ version: String, listed: String, _ headers: [String]
    ) async throws -> (code: ProviderError.Code?, text: String) {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": request.path == "/" ? rows(("/", collection)) : listing("/file", tag: listed)
            default: reply("200 OK", headers, "text")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        let sink = ConformanceSink()
        do throws(ProviderError) {
            try await provider.fetchContents(of: Self.file, version: ContentVersion(version), range: nil, into: sink)
        } catch {
            return (error.code, "")
        }
        return (nil, String(decoding: sink.bytes, as: UTF8.self))
    }

    /// lighttpd, of files whose type it does not know: what is there is looked at before and after.
    @Test func aReplyThatDoesNotSayWhatItSendsIsLookedAt() async throws {
        #expect(try await fetch("7", listed: "\"7\"", []).text == "text")
        #expect(try await fetch("7", listed: "\"8\"", []).code == .stale)
    }

    /// nginx: no tags in listings, so the time is the version, and content comes with a tag all the same.
    @Test func aTagThatListingsDoNotHaveIsNoOtherVersion() async throws {
        let headers = ["ETag: \"6b02b853-4\"", "Last-Modified: \(Self.modified)"]
        #expect(try await fetch("4-\(Self.modified)", listed: "\"7\"", headers).text == "text")
        #expect(try await fetch("5-\(Self.modified)", listed: "\"7\"", headers).code == .stale)
    }

    /// nginx lists no hidden names, ownCloud composes letters, others refuse some: uploaded as they are, they would be in no
    /// listing, and be taken for removed.
    @Test func aNameThatTheServerWouldNotKeepTravelsEscaped() async throws {
        let isMade = Mutex(false)
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): return rows(("/", collection), ("/%E2%80%9B2Ea%E2%80%9B5Cb/", collection))
            case ("PROPFIND", let path): return isMade.withLock { $0 } ? rows((path, collection)) : reply("404 Not Found")
            case ("MKCOL", _): isMade.withLock { $0 = true }
            default: break
            }
            return reply("201 Created")
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [], escapes: [.hidden, .backslash])
        let name = FileName(".a\\b")!
        let root = try await provider.enumerateItems(in: Self.root, page: nil)
        #expect(root.items.map(\.name) == [name])
        let metadata = Metadata(mode: 0o755, owner: 1, group: 2, modificationTime: .zero)
        let inner = NewItem(name: FileName("e\u{301}")!, kind: .folder, metadata: metadata)
        let parent = ItemReference(identifier: root.items[0].identifier, path: [name])
        let made = try await provider.create(inner, in: parent, contents: nil)
        #expect(made.name == inner.name)
        #expect(server.requests.contains { $0.hasPrefix("MKCOL /%E2%80%9B2Ea%E2%80%9B5Cb/e%CC%81/ ") })
        #expect(provider.limitations.contains { $0.contains("a dot first: they are escaped there") })
    }

    @Test func aNameThatTheServerKeepsInNoFormStaysHere() async throws {
        let server = ScriptedServer { request in
            request.method == "OPTIONS" ? reply("200 OK", ["DAV: 1", "Server: s"]) : rows(("/", collection))
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["keepsNoEscapes"], escapes: .hidden)
        let item = NewItem(
            name: FileName(".profile")!, kind: .file,
            metadata: Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: .zero))
        let source = try ConformanceSource(Array("text".utf8))
        do throws(ProviderError) {
            _ = try await provider.create(item, in: Self.root, contents: source)
            Issue.record("it was made")
        } catch {
            #expect(error.code == .refused && error.message.contains("cannot keep the name"))
        }
        #expect(!server.requests.contains { $0.hasPrefix("PUT") })
    }

    /// ownCloud and Nextcloud number their files. What is listed, looked at and made is called by its number.
    @Test func anItemIsCalledByTheNumberThatTheServerHasForIt() async throws {
        @Sendable func numbered(_ number: String, isFolder: Bool = false) -> String {
            let kind = isFolder ? "<collection/>" : ""
            return """
                <propstat><prop><resourcetype>\(kind)</resourcetype><getetag>"1"</getetag><getcontentlength>4</getcontentlength>\
                <getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</getlastmodified>\
                <fileid xmlns="http://owncloud.org/ns">\(number)</fileid></prop><status>HTTP/1.1 200 OK</status></propstat>
                """
        }
        let script: ScriptedServer.Script = { request in
            guard request.method == "PROPFIND" else {
                return request.method == "OPTIONS" ? reply("200 OK", ["DAV: 1", "Server: s"]) : reply("201 Created")
            }
            let asks = request.body.contains("fileid")
            switch request.path {
            case "/":
                let file = asks ? numbered("12oc") : ""
                return rows(("/", collection), ("/a", file), ("/b/", numbered("13oc", isFolder: true)))
            case "/a": return rows(("/a", numbered("12oc")))
            default: return rows((request.path, numbered("14oc", isFolder: true)))
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["tellsNumbers"])
        let root = ItemReference(identifier: try await provider.root().identifier, path: [])
        let items = try await provider.enumerateItems(in: root, page: nil).items
        #expect(items.map(\.identifier) == [ItemIdentifier(number: "12oc"), ItemIdentifier(number: "13oc")])
        let file = ItemReference(identifier: ItemIdentifier(number: "1oc"), path: [FileName("a")!])
        #expect(try await provider.item(for: file) == items[0])
        #expect(provider.capabilities.contains(.placeIdentifiers) && !root.identifier.isNumber)
    }

    /// What is tried in one way leaves alone what else is tried: properties of a file that was removed meanwhile were taken for
    /// lost.
    @Test(arguments: [true, false]) func aServerThatNumbersItsFilesIsKnown(keepsNumber: Bool) async throws {
        let numbering = NumberingServer(keepsNumber: keepsNumber)
        let server = ScriptedServer { numbering.answer($0) }
        defer { server.stop() }
        let provider = try WebDAVProvider(
            location: try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/"), credentials: CredentialSource(),
            stateFolder: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.connect()
        #expect(provider.capabilities.contains(.metadata), "\(provider.limitations)")
        numbering.put("text", "/file")
        let found = try await provider.item(for: Self.file)
        #expect(found.identifier.isNumber == keepsNumber && found.size == 4)
    }

    /// Xandikos escapes commas twice where it says that a name is not there; anything else is about something else.
    @Test(arguments: [
        ("http://127.0.0.1/a%252Cb%20", "404 Not Found", ProviderError.Code.notFound),
        ("/a%252Cc%20", "404 Not Found", .retry), ("/a%252Cb%2520", "404 Not Found", .retry),
        ("/a%252Cb%20", "403 Forbidden", .retry), ("/a%2Cb%20", "404 Not Found", .notFound),
    ])
    func whatIsGoneMayHaveCommasEscapedTwice(reference: String, status: String, code: ProviderError.Code) async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): rows(("/", collection))
            default: rows((reference, "<status>HTTP/1.1 \(status)</status>"))
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        do throws(ProviderError) {
            _ = try await provider.item(for: ItemReference(identifier: ItemIdentifier("/a"), path: [FileName("a,b ")!]))
            Issue.record("it was found")
        } catch {
            #expect(error.code == code)
        }
    }

    /// ownCloud and Nextcloud: other clients see the time, and the server compares the hash.
    @Test func timeAndHashGoWithAContentWhereTheyAreTaken() async throws {
        let part = PartServer(.takesNone)
        let server = part.start()
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["takesTimes", "takesChecksums", "honoursOverwrite"])
        let metadata = Metadata(
            mode: 0o644, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1_234_567_890, nanoseconds: 5))
        let item = NewItem(name: FileName("file")!, kind: .file, metadata: metadata)
        _ = try await provider.create(item, in: Self.root, contents: try ConformanceSource(Array("text".utf8)))
        let sent = server.requests.first { $0.hasPrefix("PUT") } ?? ""
        #expect(sent.contains("X-OC-Mtime: 1234567890\r\n"))
        #expect(sent.contains("OC-Checksum: SHA1:372ea08cab33e71c02c651dbc83a474d32c676ea"))
    }

    /// ownCloud; the reply does not say of which version it is.
    @Test(arguments: [("image/png", "7", true), ("image/png", "8", false), ("text/plain", "7", false)])
    func aPictureThatTheServerMakesIsOfTheVersion(kind: String, version: String, isTaken: Bool) async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): rows(("/", collection))
            case ("GET", "/file?preview=1&x=64&y=64&a=1"): reply("200 OK", ["Content-Type: \(kind)"], "picture")
            default: reply("200 OK", ["ETag: \"7\""], "text")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [], previews: .file)
        let found = try await provider.fetchThumbnail(of: Self.file, version: ContentVersion(version), size: 64)
        #expect(found == (isTaken ? Array("picture".utf8) : nil))
    }

    /// sabre/dav over plain folders: the second save of a file was a conflict.
    @Test func aLockThatEndedWithWhatAMoveReplacedIsNotMissed() async throws {
        let tag = Mutex("7")
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1, 2", "Server: s"])
            case ("LOCK", _): return reply("200 OK", ["Lock-Token: <urn:lock>"])
            case ("PROPFIND", "/"): return rows(("/", keepingCollection))
            case ("PROPFIND", _): return listing("/file", tag: tag.withLock { "\"\($0)\"" })
            case ("HEAD", _): return reply("200 OK", ["ETag: \"8\""], length: 4)
            case ("MOVE", _): tag.withLock { $0 = "9" }
            case ("PROPPATCH", _) where request.head.contains("urn:lock"): return reply("412 Precondition Failed")
            case ("PROPPATCH", _): return rows((request.path, "<propstat><prop/><status>HTTP/1.1 200 OK</status></propstat>"))
            default: break
            }
            return reply("201 Created")
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["locks", "keepsProperties", "honoursOverwrite"])
        let source = try ConformanceSource(Array("text".utf8))
        let saved = try await provider.modify(
            Self.file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("7"))
        #expect(saved.version == ContentVersion("9"))
    }

    /// sabre/dav, when its database of properties is busy.
    @Test func aMoveThatFailedAfterItWasDoneIsDone() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("MOVE", _): reply("500 Internal Server Error")
            case ("PROPFIND", "/moved"): listing("/moved", tag: "\"7\"")
            case ("PROPFIND", "/file"): reply("404 Not Found")
            default: rows(("/", collection))
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["honoursOverwrite"])
        let changes = ItemChanges(place: (Self.root, FileName("moved")!))
        let moved = try await provider.modify(Self.file, changes: changes, contents: nil, baseVersion: nil)
        #expect(moved.name == FileName("moved"))
    }
}

/// Files in memory with properties and numbers, which stay with a file or with its place.
private final class NumberingServer: Sendable {
    private struct File {
        var text: String
        var number: Int
        var kept: String?
    }

    private let keepsNumber: Bool
    private let state = Mutex<(files: [String: File], count: Int)>(([:], 0))

    init(keepsNumber: Bool) { self.keepsNumber = keepsNumber }

    func put(_ text: String, _ path: String) {
        state.withLock { state in
            state.count += 1
            state.files[path, default: File(text: "", number: state.count)].text = text
        }
    }

    func answer(_ request: ScriptedServer.Request) -> String? {
        let path = request.path
        if request.method == "PUT", !request.head.contains("Content-Range") {
            put(request.body, path)
            return reply("201 Created")
        }
        return state.withLock { state in
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "MKCOL": return reply("201 Created")
            case "PROPFIND" where path.hasSuffix("/"): return rows((path, collection))
            case "MOVE", "DELETE", "GET", "HEAD", "PROPFIND", "PROPPATCH": break
            default: return reply("501 Not Implemented")
            }
            guard var file = state.files[path] else { return reply("404 Not Found") }
            switch request.method {
            case "DELETE":
                state.files[path] = nil
                return reply("204 No Content")
            case "MOVE":
                let line = request.head.split(separator: "\r\n").first { $0.hasPrefix("Destination: ") } ?? ""
                let target = "/" + line.split(separator: "/").dropFirst(2).joined(separator: "/")
                if request.head.contains("Overwrite: F"), state.files[target] != nil { return reply("412 Precondition Failed") }
                if !keepsNumber {
                    state.count += 1
                    file.number = state.count
                }
                state.files[path] = nil
                state.files[target] = file
                return reply("201 Created")
            case "PROPPATCH":
                let text = request.body.split(separator: "<state xmlns=\"urn:promisefs\">").last ?? ""
                state.files[path]?.kept = text.split(separator: "<").first.map(String.init)
                return rows((path, "<propstat><prop/><status>HTTP/1.1 200 OK</status></propstat>"))
            case "PROPFIND":
                let kept = file.kept.map { "<state xmlns=\"urn:promisefs\">\($0)</state>" } ?? ""
                let properties = """
                    <resourcetype/><getetag>"\(file.text)"</getetag><getcontentlength>\(file.text.utf8.count)</getcontentlength>\
                    \(kept)<fileid xmlns="http://owncloud.org/ns">\(file.number)oc</fileid>
                    """
                return rows((path, "<propstat><prop>\(properties)</prop><status>HTTP/1.1 200 OK</status></propstat>"))
            case "HEAD": return reply("200 OK", ["ETag: \"\(file.text)\""], length: file.text.utf8.count)
            default: return reply("200 OK", ["ETag: \"\(file.text)\""], file.text)
            }
        }
    }
}
