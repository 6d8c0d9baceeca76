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
}
