import Foundation
import Logging
import PromiseCore
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Synchronization
import Testing

/// How many requests a bucket is asked for ordinary things, and that none of those that are left out
/// was needed: the server sees itself whether what is known is so still.
struct RequestCountTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withBucket(
        honoursConditions: Bool, isKnown: Bool = true,
        _ body: (S3Provider, Bucket, ScriptedServer) async throws -> Void
    ) async throws {
        let bucket = Bucket(honoursConditions: honoursConditions)
        let server = ScriptedServer { bucket.answer($0) }
        defer { server.stop() }
        let provider = try S3Provider(
            location: S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"),
            credentials: AccessKeySource(own: CredentialSource()), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        if isKnown { try await provider.connect() } else { try await provider.greet() }
        try await body(provider, bucket, server)
        await provider.letGo()
    }

    private func reference(_ name: String) -> ItemReference {
        ItemReference(identifier: ItemIdentifier("/" + name), path: [FileName(name)!])
    }

    private func methods(
        _ server: ScriptedServer, _ body: () async throws -> Void
    ) async rethrows -> [String] {
        let before = server.requests.count
        try await body()
        return server.requests.dropFirst(before).map { String($0.prefix { $0 != " " }) }
    }

    private func rename(_ provider: S3Provider, _ name: String, to other: String, _ tag: String) async throws {
        let changes = ItemChanges(place: (parent: root, name: FileName(other)!))
        _ = try await provider.modify(
            reference(name), changes: changes, contents: nil, baseVersion: ContentVersion(tag))
    }

    /// Nothing is asked for it: what is kept with an object is looked at before it is replaced anyway.
    @Test func newContentKeepsTheModeThatOthersGave() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket, server in
            bucket.put("a", "text", ["x-amz-meta-mode: 33188"])
            let item = try #require(try await provider.enumerateItems(in: root, page: nil).items.first)
            bucket.put("a", "text", ["x-amz-meta-mode: 33152"])
            var changes = ItemChanges(metadata: item.metadata)
            changes.keepsRights = true
            let asked = try await methods(server) {
                let edited = try await provider.modify(
                    reference("a"), changes: changes, contents: try MemorySource(Array("new".utf8)),
                    baseVersion: item.version)
                #expect(edited.metadata.mode == 0o600)
            }
            #expect(asked == ["HEAD", "PUT"])
            #expect(try await provider.item(for: reference("a")).metadata.mode == 0o600)
        }
    }

    /// 45 requests came before a mount was there.
    @Test func aFirstListingTriesNothing() async throws {
        try await withBucket(honoursConditions: true, isKnown: false) { provider, bucket, server in
            bucket.put("a", "text")
            _ = try await provider.root()
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.name) == [FileName("a")!])
            #expect(server.requests.map { String($0.prefix { $0 != " " }) } == ["GET", "GET", "HEAD"])
            _ = try await provider.delete(reference("a"), baseVersion: ContentVersion(Bucket.tag("text")))
            #expect(bucket.body("a") == nil && server.requests.count > 20, "before a change it is tried")
        }
    }

    @Test(arguments: [true, false]) func aRenameLooksAtNothingThatIsKnown(honoursConditions: Bool) async throws {
        try await withBucket(honoursConditions: honoursConditions) { provider, bucket, server in
            bucket.put("a", "text", ["x-amz-meta-mtime: 5"])
            _ = try await provider.enumerateItems(in: root, page: nil)
            let asked = try await methods(server) { try await rename(provider, "a", to: "b", Bucket.tag("text")) }
            #expect(asked == (honoursConditions ? ["PUT", "DELETE"] : ["PUT", "PUT", "PUT", "DELETE"]))
            #expect(bucket.body("a") == nil && bucket.body("b") == "text")
            // And what was renamed is known.
            let again = try await methods(server) { try await rename(provider, "b", to: "c", Bucket.tag("text")) }
            #expect(again == asked && bucket.body("c") == "text")
        }
    }

    @Test(arguments: [true, false]) func aRemovalLooksAtNothingThatIsKnown(honoursConditions: Bool) async throws {
        try await withBucket(honoursConditions: honoursConditions) { provider, bucket, server in
            bucket.put("a", "text")
            let tag = ContentVersion(Bucket.tag("text"))
            let asked = try await methods(server) { try await provider.delete(reference("a"), baseVersion: tag) }
            #expect(asked == (honoursConditions ? ["DELETE"] : ["PUT", "DELETE"]))
            #expect(bucket.body("a") == nil)
            try await provider.delete(reference("a"), baseVersion: tag)
        }
    }

    /// What every machine is to know is looked at at every poll, and was sent each time.
    @Test func aPrivateObjectThatIsTheSameIsNotSentAgain() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket, server in
            bucket.put(".promisefs/checks/one", "text")
            let objects = try #require(provider.privateObjects)
            let name = try #require(PrivateName(.checks, "one"))
            let first = try await objects.read(name)
            let again = try await methods(server) {
                let second = try await objects.read(name)
                #expect(second == first)
            }
            #expect(again == ["HEAD"] && first?.bytes == Array("text".utf8))
            bucket.put(".promisefs/checks/one", "other")
            #expect(try await objects.read(name)?.bytes == Array("other".utf8))
        }
    }

    /// Nobody has looked since.
    @Test(arguments: [true, false]) func whatIsAnotherByNowStays(honoursConditions: Bool) async throws {
        try await withBucket(honoursConditions: honoursConditions) { provider, bucket, _ in
            for name in ["a", "b"] { bucket.put(name, "text") }
            _ = try await provider.enumerateItems(in: root, page: nil)
            bucket.put("a", "theirs")
            bucket.put("new", "taken")
            let tag = Bucket.tag("text")
            await #expect(throws: ProviderError.self) { try await rename(provider, "a", to: "c", tag) }
            await #expect(throws: ProviderError.self) { try await rename(provider, "b", to: "new", tag) }
            await #expect(throws: ProviderError.self) {
                try await provider.delete(reference("a"), baseVersion: ContentVersion(tag))
            }
            #expect(["a", "b", "c", "new"].map { bucket.body($0) } == ["theirs", "text", nil, "taken"])
        }
    }
}
