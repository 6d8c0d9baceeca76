import Logging
import PromiseCore
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Synchronization
import Testing

/// What is believed of a server of buckets while it is tried what it does.
struct FirstMeetingTests {
    /// A login page that took the first object was believed in everything: the server was remembered as one that keeps no modes
    /// and times, and so it was after one answer of a server that was busy. What was set then was not sent afterwards.
    @Test(arguments: ["a login page", "slow down", "no entry"])
    func nothingIsLearntOfAServerByALoginPage(_ trouble: String) async throws {
        let hasTrouble = Mutex(false)
        let bucket = Bucket(honoursConditions: true)
        let server = ScriptedServer { request in
            guard hasTrouble.withLock({ $0 }) else { return bucket.answer(request) }
            if trouble == "no entry" { return reply("403 Forbidden") }
            if trouble == "slow down" { return request.method == "PUT" ? reply("503 Slow Down") : bucket.answer(request) }
            return reply("200 OK", ["Content-Type: text/html", "ETag: \"1\""], "<html>Accept the terms</html>")
        }
        defer { server.stop() }
        let folder = try TemporaryFolder("traits")
        let provider = try S3Provider(
            location: S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"),
            credentials: AccessKeySource(own: CredentialSource()), stateFolder: folder.path(""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.greet()
        hasTrouble.withLock { $0 = true }
        let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
        let metadata = Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(nanoseconds: 5))
        func create() async throws -> Item {
            let item = NewItem(name: FileName("file")!, kind: .file, metadata: metadata)
            return try await provider.create(item, in: root, contents: try ConformanceSource(Array("text".utf8)))
        }
        for _ in 0..<2 { await #expect(throws: ProviderError.self) { try await create() } }
        #expect(provider.limitations.isEmpty)
        hasTrouble.withLock { $0 = false }
        let made = try await create()
        #expect(made.metadata.mode == 0o640 && provider.capabilities.contains(.metadata))
        #expect(bucket.body("file") == "text")
        await provider.letGo()
    }
}
