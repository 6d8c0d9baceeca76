import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What Nextcloud 24 behind Apache 2.4.71 does, as it was seen.
struct NextcloudTests {
    private static let base = "/remote.php/dav/files/u/"
    private static let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private static let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    /// Apache believes no script that says how long its reply is, and calls one whole that broke off. A program got EIO then.
    @Test(arguments: [nil, UInt64(4)]) func aReplyOfUnknownLengthThatBrokeOffIsNotWhole(known: UInt64?) async throws {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": request.path == "/" ? rows(("/", collection)) : listing("/file", tag: "\"7\"")
            default: "HTTP/1.1 200 OK\r\nETag: \"7\"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nte\r\n0\r\n\r\n"
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        await #expect { try await provider.fetchContents(
            of: Self.file, version: ContentVersion("7"), range: nil, into: SizedSink(size: known)) } throws: { error in
            (error as? ProviderError)?.code == .retry
        }
        // Whoever knows the size does not have the server asked.
        #expect(server.requests.count { $0.hasPrefix("PROPFIND /file") } == (known == nil ? 1 : 0))
    }

    /// Of a name that nobody else has the tag is ours; the size is looked at where the file ends up.
    @Test(arguments: [4, 3]) func aNewFileIsLookedAtOnce(size: Int) async throws {
        let place = Mutex("")
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PUT": reply("201 Created", ["ETag: \"7\""])
            case "PROPPATCH": rows((request.path, "<propstat><prop/><status>HTTP/1.1 200 OK</status></propstat>"))
            case "PROPFIND" where request.path == "/": rows(("/", keepingCollection))
            case "PROPFIND": listing(request.path, tag: "\"7\"", size: size)
            case "HEAD": "HTTP/1.1 200 OK\r\nETag: \"7\"\r\n\r\n"
            case "MOVE":
                place.withLock { place in
                    place = request.path
                    return reply("201 Created")
                }
            default: reply("201 Created")
            }
        }
        defer { server.stop() }
        let provider = try await provider(
            server, remembering: ["putTellsTag", "moveKeepsTag", "keepsProperties", "honoursOverwrite"])
        let item = NewItem(name: FileName("file")!, kind: .file, metadata: Metadata(
            mode: 0o644, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0)))
        let source = try ConformanceSource(Array("text".utf8))
        let code: ProviderError.Code?
        do throws(ProviderError) {
            _ = try await provider.create(item, in: Self.root, contents: source)
            code = nil
        } catch {
            code = error.code
        }
        #expect(code == (size == 4 ? nil : .retry))
        let looks = server.requests.filter { $0.hasPrefix("HEAD") || $0.hasPrefix("PROPFIND /file") }
        #expect(looks.allSatisfy { $0.contains(" /file ") } && looks.count { $0.hasPrefix("PROPFIND") } == 1, "\(looks)")
        #expect(place.withLock { $0.hasPrefix("/.promisefs/uploads/") })
    }

    /// A look before would be out of date, and a broken PUT leaves half of it. Another's version is left as it is.
    @Test(arguments: [("7", nil), ("8", ProviderError.Code.conflict)])
    func newContentIsMovedOverItsBaseVersionOnly(there: String, code: ProviderError.Code?) async throws {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PUT": reply("201 Created", ["ETag: \"9\""])
            case "PROPFIND" where request.path == "/": rows(("/", collection))
            case "PROPFIND": listing(request.path, tag: request.path == "/file" ? "\"\(there)\"" : "\"9\"")
            case "HEAD": "HTTP/1.1 200 OK\r\nETag: \"9\"\r\n\r\n"
            case "MOVE" where request.head.contains("/file> ([\"\(there)\"])\r\n"): reply("204 No Content")
            case "MOVE": reply("412 Precondition Failed")
            case "DELETE": reply("204 No Content")
            default: reply("201 Created")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["putTellsTag", "moveKeepsTag", "movesOnlyOverMatching"])
        let source = try ConformanceSource(Array("text".utf8))
        var found: ProviderError.Code?
        do throws(ProviderError) {
            let item = try await provider.modify(
                Self.file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("7"))
            #expect(item.version == ContentVersion("9"))
        } catch {
            found = error.code
        }
        #expect(found == code)
        #expect(server.requests.count { $0.hasPrefix("PROPFIND /file") } == (code == nil ? 0 : 1))
    }

    /// What a MOVE replaced went into the trash with its versions and whom it was shared with, at every save.
    @Test(arguments: [("7", nil), ("8", ProviderError.Code.conflict)])
    func newContentIsJoinedOverTheSameFile(there: String, code: ProviderError.Code?) async throws {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND" where request.path == Self.base: rows((Self.base, collection))
            case "PROPFIND": listing(request.path, tag: "\"\(there)\"")
            case "MOVE" where request.head.contains("/u/file> ([\"\(there)\"])\r\n"): reply("204 No Content", ["OC-ETag: \"9\""])
            case "MOVE": reply("412 Precondition Failed")
            default: reply("201 Created")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["joinsOverMatching"], at: Self.base, partWriting: .chunks)
        let source = try ConformanceSource(Array("text".utf8))
        var found: ProviderError.Code?
        do throws(ProviderError) {
            let item = try await provider.modify(
                Self.file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("7"))
            #expect(item.version == ContentVersion("9"))
        } catch {
            found = error.code
        }
        #expect(found == code)
        let sent = server.requests.filter { $0.contains(" /remote.php/dav/uploads/u/") }
        let methods = sent.compactMap { $0.split(separator: " ").first.map(String.init) }
        // What a success says is looked at.
        #expect(methods == ["MKCOL", "PUT", "MOVE"] + (code == nil ? [] : ["DELETE", "PROPFIND"]))
        #expect(sent.allSatisfy { !$0.hasPrefix("MOVE") || $0.contains("/.file HTTP") && $0.contains("OC-Total-Length: 4\r\n") })
    }

    @Test func aPictureIsAskedForAtItsPage() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", Self.base): rows((Self.base, collection))
            case ("PROPFIND", _): listing(request.path, tag: "\"7\"")
            case ("GET", "/index.php/core/preview.png?file=/a%20%26b&x=64&y=64&a=1&forceIcon=0"):
                reply("200 OK", ["Content-Type: image/png"], "picture")
            default: reply("404 Not Found")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [], at: Self.base, previews: .page)
        let file = ItemReference(identifier: ItemIdentifier("/a"), path: [FileName("a &b")!])
        #expect(try await provider.fetchThumbnail(of: file, version: ContentVersion("7"), size: 64) == Array("picture".utf8))
    }

    // MARK: Earlier versions

    private static func versionRow(_ tag: String, _ size: Int, _ time: String) -> String {
        """
        <propstat><prop><resourcetype/><getetag>"\(tag)"</getetag><getcontentlength>\(size)</getcontentlength>\
        <getlastmodified>\(time)</getlastmodified></prop><status>HTTP/1.1 200 OK</status></propstat>
        """
    }

    private static let earlier = "/remote.php/dav/versions/u/versions/42/"

    /// Newer servers list the file as it is now, too. What leads elsewhere is no version.
    @Test func whatTheServerKeepsOfAFileIsListedAndRead() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", Self.base): rows((Self.base, collection))
            case ("PROPFIND", Self.earlier):
                rows(
                    (Self.earlier, collection),
                    (Self.earlier + "1000000000", Self.versionRow("1000000000", 3, "Sun, 09 Sep 2001 01:46:40 GMT")),
                    (Self.earlier + "1234567890", Self.versionRow("1234567890", 5, "Fri, 13 Feb 2009 23:31:30 GMT")),
                    (Self.earlier + "1300000000", Self.versionRow("7", 4, "Sun, 13 Mar 2011 07:06:40 GMT")),
                    (Self.earlier + "..%2f", Self.versionRow("x", 4, "Fri, 13 Feb 2009 23:31:30 GMT")))
            case ("PROPFIND", _):
                rows((request.path, Self.versionRow("7", 4, "Sun, 13 Mar 2011 07:06:40 GMT").replacing(
                    "</prop>", with: "<fileid xmlns=\"http://owncloud.org/ns\">42</fileid></prop>")))
            case ("GET", Self.earlier + "1234567890"): reply("200 OK", [], "older")
            case ("GET", Self.earlier + "1000000000"): reply("200 OK", [], "<html>Log in</html>")
            default: reply("404 Not Found")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["tellsNumbers"], at: Self.base)
        let found = try await provider.earlierVersions(of: Self.file)
        #expect(found.map(\.identifier) == ["1234567890", "1000000000"])
        #expect(found.map(\.size) == [5, 3])
        let older = try #require(found.first)
        let sink = ConformanceSink()
        try await provider.fetchContents(of: Self.file, earlier: older, into: sink)
        #expect(sink.bytes == Array("older".utf8))
        // A network's login page was taken for one.
        let oldest = try #require(found.last)
        let other = ConformanceSink()
        await #expect {
            try await provider.fetchContents(of: Self.file, earlier: oldest, into: other)
        } throws: {
            ($0 as? ProviderError)?.code == .retry
        }
        #expect(other.bytes.isEmpty)
        var gone = older
        gone.identifier = "1"
        await #expect { try await provider.fetchContents(of: Self.file, earlier: gone, into: sink) } throws: { error in
            (error as? ProviderError)?.code == .notFound
        }
    }

    @Test(arguments: [true, false]) func aServerThatKeepsNothingHasNoEarlierVersions(hasNumbers: Bool) async throws {
        let number = hasNumbers ? "<fileid xmlns=\"http://owncloud.org/ns\">42</fileid>" : ""
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", Self.base): rows((Self.base, collection))
            case ("PROPFIND", Self.base + "file"):
                rows((request.path, Self.fileRow.replacing("</prop>", with: number + "</prop>")))
            default: reply("404 Not Found")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["tellsNumbers"], at: Self.base)
        #expect(try await provider.earlierVersions(of: Self.file) == [])
    }

    /// On a read-only mount nothing is tried of a server, and its files were said to have no versions.
    @Test func earlierVersionsAreFoundAtAServerThatWasNotTried() async throws {
        let number = "<fileid xmlns=\"http://owncloud.org/ns\">42</fileid>"
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", Self.base): return rows((Self.base, collection))
            case ("PROPFIND", Self.earlier):
                return rows((Self.earlier + "1000000000", Self.versionRow("9", 3, "Sun, 09 Sep 2001 01:46:40 GMT")))
            case ("PROPFIND", Self.base + "file"):
                let isAsked = request.body.contains("fileid")
                return rows((request.path, Self.fileRow.replacing("</prop>", with: (isAsked ? number : "") + "</prop>")))
            default: return reply("404 Not Found")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [], at: Self.base)
        #expect(try await provider.earlierVersions(of: Self.file).map(\.identifier) == ["1000000000"])
    }

    // MARK: Cookies

    /// Looking at a password takes Nextcloud a quarter of a second, and it did so for each request.
    @Test func aServerThatKnowsUsByCookiesIsToldThem() async throws {
        let sessions = Counter()
        let server = ScriptedServer { request in
            let isKnown = request.head.contains("session=\(sessions.value)") && request.head.contains("strict=true")
            if request.head.contains("session="), !isKnown { return reply("401 Unauthorized", ["WWW-Authenticate: Basic"]) }
            if !isKnown { sessions.increment() }
            let cookies = isKnown ? [] : ["Set-Cookie: session=\(sessions.value); path=/; HttpOnly", "Set-Cookie: strict=true"]
            let isRoot = request.path == "/"
            return reply(
                "207 Multi-Status", cookies + ["DAV: 1", "Server: s"],
                """
                <multistatus xmlns="DAV:"><response><href>\(request.path)</href>\(isRoot ? collection : Self.fileRow)</response>\
                </multistatus>
                """)
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        for _ in 0..<3 { _ = try await provider.item(for: Self.file) }
        #expect(sessions.value == 1)
        // Who is not known any more says who he is.
        sessions.increment()
        for _ in 0..<3 { _ = try await provider.item(for: Self.file) }
        #expect(sessions.value == 3)
    }

    private static let fileRow = """
        <propstat><prop><resourcetype/><getetag>"1"</getetag><getcontentlength>4</getcontentlength></prop>\
        <status>HTTP/1.1 200 OK</status></propstat>
        """

    private func jar(_ cookies: String..., isEncrypted: Bool = true, at time: Int = 0) -> CookieJar {
        var jar = CookieJar(host: "cloud.example.org", isEncrypted: isEncrypted)
        for cookie in cookies { jar.take(["Set-Cookie": cookie], at: Timestamp(seconds: time, nanoseconds: 0)) }
        return jar
    }

    private func sent(_ jar: CookieJar, _ path: String = "/dav/file", at time: Int = 0) -> String? {
        jar.value(path: path, at: Timestamp(seconds: time, nanoseconds: 0))
    }

    /// One that gave another with each reply was remembered until there was no memory.
    @Test func ofAServerThatGivesOthersWithoutEndNoneIsRemembered() {
        var jar = jar()
        var most = 0
        for number in 0..<1_000 {
            jar.take(["Set-Cookie": "c\(number)=1"], at: .zero)
            most = max(most, jar.count)
        }
        #expect(most <= 50 && jar.count == 0)
        #expect(sent(jar) == nil)
    }

    @Test func cookiesAreOfTheirPathAndTheirTime() {
        #expect(sent(jar("a=1", "b=2; Path=/dav", "c=3; Path=/da")) == "b=2; a=1")
        #expect(sent(jar("a=1; Path=/dav/"), "/dav") == nil)
        #expect(sent(jar("a=1; Path=/dav"), "/dav") == "a=1")
        #expect(sent(jar("a=1; Max-Age=60"), at: 59) == "a=1")
        #expect(sent(jar("a=1; Max-Age=60"), at: 60) == nil)
        #expect(sent(jar("a=1", "a=2")) == "a=2")
        #expect(sent(jar("a=1", "a=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0")) == nil)
        #expect(sent(jar("a=1", "a=x; Expires=Thu, 01 Jan 1970 00:00:01 GMT", at: 10), at: 10) == nil)
        #expect(sent(jar("a=1; expires=Fri, 31-Dec-2100 23:59:59 GMT"), at: 1_800_000_000) == "a=1")
        #expect(sent(jar("a=1; Domain=example.org")) == "a=1")
    }

    /// Nextcloud refuses whoever says one and not the other.
    @Test func aServerThatGivesOneThatMustNotComeBackGetsNone() {
        #expect(sent(jar("a=1", "b=2; Secure"), "/") == "a=1; b=2")
        #expect(sent(jar("a=1", "b=2; Secure", isEncrypted: false)) == nil)
        #expect(sent(jar("a=1", "b=2; Domain=other.org")) == nil)
        #expect(sent(jar("a=1", "b=\(String(repeating: "x", count: 5000))")) == nil)
    }
}

private final class SizedSink: ContentSink {
    let size: UInt64?

    init(size: UInt64?) { self.size = size }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) {}

    func copy(from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64) -> UInt64 { count }
}
