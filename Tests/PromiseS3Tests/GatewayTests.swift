import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Synchronization
import Testing

/// Servers that keep objects as files, as `rclone serve s3` does: what a file system cannot hold they keep otherwise.
struct GatewayTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withGateway(_ body: (S3Provider, Gateway, ScriptedServer) async throws -> Void) async throws {
        let gateway = Gateway()
        let server = ScriptedServer { gateway.answer($0) }
        defer { server.stop() }
        let provider = try S3Provider(
            location: S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"),
            credentials: AccessKeySource(own: CredentialSource()), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.connect()
        try await body(provider, gateway, server)
    }

    private func folder(_ name: String) -> NewItem {
        NewItem(
            name: FileName(name)!, kind: .folder,
            metadata: Metadata(mode: 0o755, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1, nanoseconds: 0)))
    }

    @Test func whereAKeyWithASlashBecomesAFileAFolderIsNone() async throws {
        try await withGateway { provider, gateway, _ in
            #expect(gateway.keys == [], "the probe takes its own away")
            let made = try await provider.create(folder("new"), in: root, contents: nil)
            #expect(gateway.keys == ["new/.promisefs-folder"])
            let listed = try await provider.enumerateItems(in: root, page: nil).items
            #expect(listed.map(\.name.display) == ["new"] && listed.map(\.kind) == [.folder])
            let reference = ItemReference(identifier: made.identifier, path: [made.name])
            let inside = try await provider.enumerateItems(in: reference, page: nil).items
            #expect(inside.isEmpty)
            try await provider.delete(reference, baseVersion: nil)
            #expect(gateway.keys == [])
        }
    }

    /// Whoever listed a folder had ended the move; asked for once more, it seemed to be refused for what is there, and was
    /// undone here.
    @Test(arguments: [true, false]) func aMoveThatSomebodyHasEndedMeanwhileIsNoConflict(isFolder: Bool) async throws {
        try await withGateway { provider, _, _ in
            let target = FileName("new")!
            var item = folder("new")
            if !isFolder { item.kind = .file }
            let there = try await provider.create(item, in: root, contents: nil)
            let old = ItemReference(identifier: ItemIdentifier("/old"), path: [FileName("old")!])
            func move(_ reference: ItemReference) async -> ProviderError.Code? {
                do throws(ProviderError) {
                    _ = try await provider.modify(
                        reference, changes: ItemChanges(place: (root, target)), contents: nil, baseVersion: nil)
                    return nil
                } catch {
                    return error.code
                }
            }
            #expect(await move(old) == .notFound)
            #expect(try await provider.enumerateItems(in: root, page: nil).items.map(\.identifier) == [there.identifier])
            item.name = old.path[0]
            _ = try await provider.create(item, in: root, contents: nil)
            #expect(await move(old) == .conflict, "what has its name is something else")
        }
    }

    @Test func theNameOfWhatKeepsAFolderIsNoFiles() async throws {
        try await withGateway { provider, gateway, _ in
            do throws(ProviderError) {
                _ = try await provider.create(folder(".promisefs-folder"), in: root, contents: nil)
                Issue.record("it was taken")
            } catch {
                #expect(error.code == .refused && gateway.keys == [])
            }
        }
    }

    /// It was a conflict with itself.
    @Test func anUploadWhoseEndTellsAnotherTagIsTaken() async throws {
        try await withGateway { provider, gateway, _ in
            let content = [UInt8](repeating: UInt8(ascii: "x"), count: 17 << 20)
            var file = folder("large")
            (file.kind, file.metadata.mode) = (.file, 0o644)
            let made = try await provider.create(file, in: root, contents: try MemorySource(content))
            let listed = try await provider.enumerateItems(in: root, page: nil).items
            #expect(gateway.keys == ["large"] && listed.map(\.size) == [UInt64(content.count)])
            #expect(listed.map(\.version) == [made.version])
        }
    }

    /// It was asked for at each look, for ever, and in large folders never shown.
    @Test func whereListingsTellOtherTimesAModeIsAskedForOnce() async throws {
        try await withGateway { provider, gateway, server in
            gateway.put("file", Gateway.Object(body: "text", metadata: ["x-amz-meta-mode: 33152"]))
            let first = try await provider.enumerateItems(in: root, page: nil).items
            let before = server.requests.count
            let second = try await provider.enumerateItems(in: root, page: nil).items
            #expect(first.map(\.metadata.mode) == [0o600] && second.map(\.metadata.mode) == [0o600])
            #expect(server.requests.dropFirst(before).filter { $0.hasPrefix("HEAD") } == [])
        }
    }
}

/// Objects in memory.
private final class Gateway: Sendable {
    struct Object {
        var body: String
        var metadata: [String]
    }

    private let objects = Mutex<[String: Object]>([:])
    /// Of the one upload that each key has.
    private let parts = Mutex<[String: [Int: String]]>([:])

    var keys: [String] { objects.withLock { $0.keys.sorted() } }

    func put(_ key: String, _ object: Object) { objects.withLock { $0[key] = object } }

    func answer(_ request: ScriptedServer.Request) -> String {
        let halves = request.path.dropFirst("/bucket".count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = halves.dropFirst().first.map { Dictionary($0.split(separator: "&").map(Gateway.pair)) { $1 } } ?? [:]
        let key = Gateway.decoded(halves[0].split(separator: "/").joined(separator: "/"))
        switch request.method {
        case "GET" where query["list-type"] != nil: return listing(query["prefix"] ?? "", isFlat: query["delimiter"] == nil)
        case "GET", "HEAD":
            guard let object = objects.withLock({ $0[key] }) else { return reply("404 Not Found") }
            return request.method == "GET" ? reply("200 OK", headers(object), object.body) : head(object)
        case "PUT" where query["partNumber"] != nil:
            parts.withLock { $0[key, default: [:]][Int(query["partNumber"]!)!] = request.body }
            return reply("200 OK", ["ETag: \(Gateway.tag(request.body))"])
        case "POST" where query["uploads"] != nil:
            return reply("200 OK", [], "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
        case "POST" where query["uploadId"] != nil:
            let whole = parts.withLock { $0.removeValue(forKey: key) } ?? [:]
            put(key, Object(body: whole.sorted { $0.key < $1.key }.map(\.value).joined(), metadata: []))
            let tag = "<ETag>another-\(whole.count)</ETag>"
            return reply("200 OK", [], "<CompleteMultipartUploadResult>\(tag)</CompleteMultipartUploadResult>")
        case "PUT" where !request.head.lowercased().contains("x-amz-copy-source"):
            let lines = request.head.split(separator: "\r\n").map(String.init)
            put(key, Object(body: request.body, metadata: lines.filter { $0.lowercased().hasPrefix("x-amz-meta-") }))
            return reply("200 OK", ["ETag: \(Gateway.tag(request.body))"])
        case "DELETE":
            objects.withLock { $0[key] = nil }
            return reply("204 No Content")
        default: return reply("501 Not Implemented")
        }
    }

    private func headers(_ object: Object) -> [String] {
        ["ETag: \(Gateway.tag(object.body))", "Last-Modified: Sun, 22 Nov 2026 02:13:18 GMT"] + object.metadata
    }

    private func head(_ object: Object) -> String { reply("200 OK", headers(object), "", length: object.body.utf8.count) }

    private func listing(_ prefix: String, isFlat: Bool) -> String {
        var (rows, prefixes) = ("", Set<String>())
        for (key, object) in objects.withLock({ $0 }).sorted(by: { $0.key < $1.key }) where key.hasPrefix(prefix) {
            if !isFlat, let slash = key.dropFirst(prefix.count).firstIndex(of: "/") {
                prefixes.insert(String(key[...slash]))
            } else {
                rows += "<Contents><Key>\(key)</Key><LastModified>1979-05-15T16:26:02.701Z</LastModified>"
                rows += "<ETag>\(Gateway.tag(object.body))</ETag><Size>\(object.body.utf8.count)</Size></Contents>"
            }
        }
        let folders = prefixes.sorted().map { "<CommonPrefixes><Prefix>\($0)</Prefix></CommonPrefixes>" }.joined()
        return reply("200 OK", [], "<ListBucketResult>\(rows)\(folders)<IsTruncated>false</IsTruncated></ListBucketResult>")
    }

    /// Of nothing but the content, as an MD5 is.
    private static func tag(_ body: String) -> String {
        String(body.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }, radix: 16)
    }

    private static func decoded(_ text: some StringProtocol) -> String {
        String(decoding: PercentEncoding.decoded(text) ?? [], as: UTF8.self)
    }

    private static func pair(_ text: Substring) -> (String, String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? decoded(parts[1]) : "")
    }
}
