import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Testing

/// Who may write to a bucket may not delete from it, at all or at some places.
struct RefusedDeletionTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withBucket(
        honoursConditions: Bool, _ body: (S3Provider, Bucket) async throws -> Void
    ) async throws {
        let bucket = Bucket(honoursConditions: honoursConditions)
        let server = ScriptedServer { bucket.answer($0) }
        defer { server.stop() }
        let address = "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"
        let provider = try S3Provider(
            location: S3Location(parsing: address),
            credentials: AccessKeySource(own: CredentialSource()), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.connect()
        try await body(provider, bucket)
    }

    private func reference(_ name: String) -> ItemReference {
        ItemReference(identifier: ItemIdentifier("/" + name), path: [FileName(name)!])
    }

    private static let hollow = ["x-amz-meta-promisefs-hollow: deleted"]

    /// It was said to be done, each time that it was tried.
    @Test func whatADeletionLeftThatMayNotBeDeletedIsNotSaidToBe() async throws {
        try await withBucket(honoursConditions: false) { provider, bucket in
            bucket.put("left", "", RefusedDeletionTests.hollow)
            bucket.refuseDeletion(of: "left")
            let error = await #expect(throws: ProviderError.self) {
                try await provider.delete(reference("left"), baseVersion: ContentVersion("1"))
            }
            #expect(error?.code == .refused)
        }
    }

    @Test func aFolderWithWhatMayNotBeDeletedIsListed() async throws {
        try await withBucket(honoursConditions: false) { provider, bucket in
            bucket.put("file", "text")
            bucket.put("left", "", RefusedDeletionTests.hollow)
            bucket.refuseDeletion(of: "left")
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.name.display) == ["file"])
        }
    }

    private func move(
        _ provider: S3Provider, _ source: String, to target: String
    ) async throws(ProviderError) {
        let changes = ItemChanges(place: (parent: root, name: FileName(target)!))
        _ = try await provider.modify(
            reference(source), changes: changes, contents: nil, baseVersion: nil)
    }

    /// It was at both places, and the copy came as a new file.
    @Test func aFileThatMayNotBeDeletedWhereItIsMovedFromStaysThereAlone() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket in
            bucket.put("a", "text")
            bucket.refuseDeletion(of: "a")
            let error = await #expect(throws: ProviderError.self) {
                try await move(provider, "a", to: "b")
            }
            #expect(error?.code == .refused)
            #expect(bucket.body("a") == "text" && bucket.body("b") == nil)
        }
    }

    @Test func whatMayNotBeDeletedInAFolderThatIsMovedStaysThereAlone() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket in
            for name in ["a", "b"] { bucket.put("old/" + name, "text") }
            bucket.refuseDeletion(of: "old/a")
            try await move(provider, "old", to: "new")
            #expect(bucket.body("old/a") == "text" && bucket.body("new/a") == nil)
            #expect(bucket.body("old/b") == nil && bucket.body("new/b") == "text")
        }
    }

    /// Where the server honours no condition on deletions a hollow object is in its place by then.
    @Test(arguments: ["text", ""], [true, false])
    func theCopyOfWhatIsNoMoreWhereItWasMovedFromStays(text: String, isFolder: Bool) async throws {
        try await withBucket(honoursConditions: false) { provider, bucket in
            let (old, new) = isFolder ? ("old/a", "new/a") : ("old", "new")
            bucket.put(old, text)
            bucket.refuseDeletion(of: old)
            await #expect(throws: ProviderError.self) {
                try await move(provider, "old", to: "new")
            }
            #expect(bucket.isHollow(old))
            #expect(bucket.body(new) == text)
        }
    }

    /// Others wrote it anew while its removal was refused.
    @Test func theCopyOfWhatOthersChangeMeanwhileStaysWhereItsRemovalIsRefused() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket in
            bucket.put("a", "text")
            bucket.refuseDeletion(of: "a")
            bucket.before { request in
                if request.method == "DELETE", request.path.hasPrefix("/bucket/a") {
                    bucket.put("a", "theirs")
                }
            }
            await #expect(throws: ProviderError.self) { try await move(provider, "a", to: "b") }
            bucket.before { _ in }
            #expect(bucket.body("a") == "theirs" && bucket.body("b") == "text")
        }
    }
}
