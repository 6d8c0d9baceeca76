import Foundation
import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Synchronization
import Testing

/// What a server of buckets does that means harm, or is out of its mind: docs/SECURITY.md names each.
struct HostileBucketTests {
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withProvider(
        _ script: @escaping ScriptedServer.Script, _ body: (S3Provider, ScriptedServer) async throws -> Void
    ) async throws {
        let server = ScriptedServer(script)
        defer { server.stop() }
        let location = try S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)")
        let key = AccessKey(identifier: "key", secret: Secret("secret"))
        let provider = try S3Provider(
            location: location, credentials: AccessKeySource(given: key, own: CredentialSource()), stateFolder: nil,
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

    private static func page(_ rows: String, _ end: String = "<IsTruncated>false</IsTruncated>") -> String {
        reply("200 OK", [], "<ListBucketResult>\(rows)\(end)</ListBucketResult>")
    }

    private static func row(_ key: String, size: String, tag: String = "<ETag>1</ETag>") -> String {
        "<Contents><Key>\(key)</Key>\(tag)<Size>\(size)</Size></Contents>"
    }

    @Test(arguments: ["", "-1", "x", "1152921504606846977", "9223372036854775808", "18446744073709551615"])
    func aSizeThatCannotBeIsRefusedWithASentence(size: String) async throws {
        try await withProvider({ _ in HostileBucketTests.page(HostileBucketTests.row("file", size: size)) }) { provider, _ in
            let found = await error { _ = try await provider.enumerateItems(in: root, page: nil) }
            #expect(found?.code == .permanent && found?.message.contains("'file'") == true)
        }
    }

    @Test(arguments: ["", "<LastModified>yesterday</LastModified>"])
    func aTimeThatIsNotToldIsNotTheEpoch(time: String) async throws {
        let rows = HostileBucketTests.row("file", size: "1", tag: "<ETag>1</ETag>" + time)
        try await withProvider({ request in
            request.method == "GET"
                ? HostileBucketTests.page(rows) : reply("200 OK", ["ETag: \"1\""], "", length: 1)
        }) { provider, _ in
            let item = try #require(try await provider.enumerateItems(in: root, page: nil).items.first)
            #expect(item.isGuess && item.metadata.modificationTime.seconds > 1_500_000_000)
        }
    }

    /// Whether something is a folder is asked by what is in it: that look never ended.
    @Test(.timeLimit(.minutes(2))) func pagesThatNeverEndEndALookIntoAFolder() async throws {
        let count = Mutex(0)
        try await withProvider({ request in
            guard request.method == "GET" else { return reply("404 Not Found", [], "") }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return HostileBucketTests.page(
                "",
                "<IsTruncated>true</IsTruncated><NextContinuationToken>\(number)</NextContinuationToken>")
        }) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .retry && found?.message.contains("does not end") == true)
        }
    }

    /// Whoever looked for its own objects at the storage, when a mount begins or an application
    /// starts, never came back.
    @Test(.timeLimit(.minutes(2)))
    func pagesThatNeverEndEndAListingOfPrivateObjects() async throws {
        let count = Mutex(0)
        try await withProvider({ _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let token = "<NextContinuationToken>\(number)</NextContinuationToken>"
            return HostileBucketTests.page("", "<IsTruncated>true</IsTruncated>" + token)
        }) { provider, _ in
            let objects = try #require(provider.privateObjects)
            let found = await error { _ = try await objects.list(.checks) }
            #expect(found?.code == .retry && found?.message.contains("does not end") == true)
        }
    }

    /// An upload that had broken off asked for ever which of its parts had arrived.
    @Test(.timeLimit(.minutes(1)), arguments: ["again", "beyond", "text", "back"])
    func partsThatNeverEndEndALookAtAnUpload(kind: String) async throws {
        let pages = Mutex(0)
        try await withProvider({ request in
            switch request.method {
            case "GET" where request.path.contains("list-type"): return HostileBucketTests.page("")
            case "GET":
                let count = pages.withLock { pages in
                    pages += 1
                    return pages
                }
                return HostileBucketTests.parts(kind, count)
            case "HEAD": return reply("404 Not Found")
            case "PUT": return reply("200 OK", ["ETag: part"])
            case "POST" where request.path.contains("uploadId"): return reply("503 Slow Down")
            case "POST": return reply("200 OK", [], "<Result><UploadId>one</UploadId></Result>")
            default: return reply("204 No Content")
            }
        }) { provider, _ in
            let metadata = Metadata(
                mode: 0o640, owner: 1, group: 2,
                modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
            let item = NewItem(name: FileName("new")!, kind: .file, metadata: metadata)
            let contents = try MemorySource([UInt8](repeating: 0x61, count: 17 << 20))
            for attempt in 1...2 {
                let found = await error {
                    _ = try await provider.create(item, in: root, contents: contents)
                }
                #expect(found?.code == .retryAfter(.seconds(5)), "at the end of it")
                let asked = pages.withLock { $0 }
                #expect(attempt == 1 ? asked == 0 : (1...3).contains(asked))
            }
        }
    }

    /// `promisefs versions --earlier` asked for ever new pages with nothing on them.
    @Test(.timeLimit(.minutes(2))) func pagesOfVersionsThatNeverEndEndTheLook() async throws {
        let count = Mutex(0)
        try await withProvider({ _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let end = "<NextKeyMarker>file</NextKeyMarker><NextVersionIdMarker>\(number)</NextVersionIdMarker>"
            let page = "<ListVersionsResult><IsTruncated>true</IsTruncated>\(end)</ListVersionsResult>"
            return reply("200 OK", [], page)
        }) { provider, _ in
            let found = await error { _ = try await provider.earlierVersions(of: file) }
            #expect(found?.code == .retry && found?.message.contains("does not end") == true)
        }
    }

    /// The last page was shown whole, whatever was on it.
    @Test(.timeLimit(.minutes(2))) func ofMoreVersionsThanCanBeShownTheNewestAre() async throws {
        let rows = (0..<10_050).map { number in
            let year = 1900 + number / 100
            let (month, day) = (number % 100 / 10 + 1, number % 10 + 10)
            let time = "\(year)-\(month < 10 ? "0" : "")\(month)-\(day)T00:00:00.000Z"
            return "<Version><Key>file</Key><VersionId>\(number)</VersionId><IsLatest>false</IsLatest>"
                + "<LastModified>\(time)</LastModified><ETag>\(number)</ETag><Size>4</Size></Version>"
        }
        try await withProvider({ _ in
            reply("200 OK", [], "<ListVersionsResult>\(rows.joined())<IsTruncated>false</IsTruncated></ListVersionsResult>")
        }) { provider, _ in
            let found = try await provider.earlierVersions(of: file)
            #expect(found.count == 10_000 && found.first?.identifier == "10049")
        }
    }

    /// What came of it was taken for where the link leads.
    @Test func aLinkOfWhichNotAllComesIsNoLinkThatLeadsElsewhere() async throws {
        let headers = ["ETag: \"1\"", "x-amz-meta-mode: 41471"]
        let script: ScriptedServer.Script = { request in
            if request.path.contains("list-type") { return HostileBucketTests.page("") }
            if request.method == "HEAD" { return reply("200 OK", headers, length: 5) }
            return "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nthe\r\n0\r\n\r\n"
        }
        try await withProvider(script) { provider, _ in
            let found = await error { _ = try await provider.item(for: file) }
            #expect(found?.code == .retry && found?.message.contains("3 bytes for 5") == true)
        }
    }

    /// A page of an upload's parts, and a next one.
    private static func parts(_ kind: String, _ count: Int) -> String {
        let next =
            switch kind {
            case "again": "7"
            case "beyond": "\(10_000 + count)"
            case "text": "page\(count)"
            default: "\(count % 2 + 1)"
            }
        let part = "<Part><PartNumber>\(-count)</PartNumber><ETag>part</ETag></Part>"
        let marker = "<NextPartNumberMarker>\(next)</NextPartNumberMarker>"
        let end = "<IsTruncated>true</IsTruncated>" + marker
        return reply("200 OK", [], "<ListPartsResult>\(part)\(end)</ListPartsResult>")
    }

    @Test func anObjectWithoutATagIsNoVersion() async throws {
        for tag in ["", "<ETag></ETag>", "<ETag>&quot;&quot;</ETag>"] {
            let rows = HostileBucketTests.row("file", size: "1", tag: tag)
            try await withProvider({ _ in HostileBucketTests.page(rows) }) { provider, _ in
                #expect(await error { _ = try await provider.enumerateItems(in: root, page: nil) }?.code == .permanent)
            }
        }
    }

    @Test(arguments: ["9223372036854775808", "18446744073709551615", ""])
    func aLookThatTellsNoSizeIsRefused(length: String) async throws {
        let script: ScriptedServer.Script = { request in
            guard request.method == "HEAD" else { return HostileBucketTests.page("") }
            let line = length.isEmpty ? "" : "Content-Length: \(length)\r\n"
            return "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\(line)Connection: close\r\n\r\n"
        }
        try await withProvider(script) { provider, _ in
            #expect(await error { _ = try await provider.item(for: file) } != nil)
        }
    }

    /// It was taken for the version of what was sent, which then was nowhere but in the cache.
    @Test(arguments: ["<!DOCTYPE html><html><p>Accept the terms</html>", "<html><body>Accept the terms</body></html>"])
    func aLoginPageTakesNoContentAndRemovesNothing(page: String) async throws {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "GET": HostileBucketTests.page("")
            case "HEAD": reply("404 Not Found")
            default: reply("200 OK", ["Content-Type: text/html; charset=utf-8", "ETag: \"page\""], page)
            }
        }
        try await withProvider(script) { provider, _ in
            let metadata = Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
            let item = NewItem(name: FileName("new")!, kind: .file, metadata: metadata)
            let contents = try MemorySource(Array("text".utf8))
            let found = await error { _ = try await provider.create(item, in: root, contents: contents) }
            #expect(found?.code == .retry, "\(String(describing: found))")
        }
    }

    /// An answer from a service of keys.
    @Test(arguments: ["1677-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
    func anEndOfAKeyThatNoTimeHoldsIsNotUnderstood(end: String) {
        let json = "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"b\", \"Expiration\": \"\(end)\"}"
        #expect(KeyReply(json: Data(json.utf8)) == nil)
    }
}
