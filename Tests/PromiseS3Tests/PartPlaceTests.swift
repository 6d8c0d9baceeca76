import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseTestSupport
import Synchronization
import Testing

/// What ends in parts goes over whatever is there, on servers that honour no condition at its end.
struct PartPlaceTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withBucket(
        honoursConditions: Bool = false, _ body: (S3Provider, Bucket) async throws -> Void
    ) async throws {
        let bucket = Bucket(honoursConditions: honoursConditions, takesParts: true)
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

    /// Another machine held the place for what it was about to copy there: the upload went over
    /// that, and the copy over the upload.
    @Test(.timeLimit(.minutes(1)))
    func anUploadInPartsWaitsForWhatAnotherMachinePutsInItsPlace() async throws {
        try await withBucket { provider, bucket in
            bucket.isAged(.new)
            bucket.put("left", "", ["x-amz-meta-promisefs-hollow: 1"])
            let seen = Mutex((looks: 0, hasLastPart: false, ends: 0))
            bucket.before { request in
                guard request.path.hasPrefix("/bucket/left") else { return }
                let isSecondLook = seen.withLock { seen in
                    if request.path.contains("partNumber=3") { seen.hasLastPart = true }
                    if request.method == "POST", request.path.contains("uploadId=") {
                        seen.ends += 1
                    }
                    if request.method == "HEAD", seen.hasLastPart { seen.looks += 1 }
                    return seen.looks == 2
                }
                if isSecondLook { bucket.put("left", "theirs") }
            }
            let metadata = Metadata(
                mode: 0o644, owner: 0, group: 0,
                modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
            let file = NewItem(name: FileName("left")!, kind: .file, metadata: metadata)
            let large = try MemorySource([UInt8](repeating: 0x61, count: 17 << 20))
            let error = await #expect(throws: ProviderError.self) {
                try await provider.create(file, in: root, contents: large)
            }
            bucket.before { _ in }
            #expect(error?.code == .conflict)
            #expect(seen.withLock { $0.hasLastPart && $0.ends == 0 })
            #expect(bucket.body("left") == "theirs")
        }
    }

    private func move(_ provider: S3Provider) async throws {
        let file = ItemReference(identifier: ItemIdentifier("/a"), path: [FileName("a")!])
        let changes = ItemChanges(place: (parent: root, name: FileName("b")!))
        _ = try await provider.modify(file, changes: changes, contents: nil, baseVersion: nil)
    }

    /// Others take a place whose holder seems to be gone, which a copy of so many bytes does.
    @Test(.timeLimit(.minutes(1)), arguments: [true, false])
    func whatOthersMakeAtTheNewNameWhilePartsAreCopiedIsNotLost(
        honoursConditions: Bool
    ) async throws {
        try await withBucket(honoursConditions: honoursConditions) { provider, bucket in
            bucket.put("a", "huge")
            bucket.before { request in
                guard request.path.hasPrefix("/bucket/b?"),
                    request.path.contains("partNumber=12")
                else { return }
                bucket.put("b", "theirs")
            }
            let error = await #expect(throws: ProviderError.self) { try await move(provider) }
            bucket.before { _ in }
            #expect(error?.code == .conflict)
            #expect(bucket.body("b") == "theirs" && bucket.body("a") == "huge")
        }
    }

    /// Whoever lists the folder removes what seems to be left by a daemon that died.
    @Test(.timeLimit(.minutes(1)))
    func thePlaceOfACopyInPartsIsTakenAgainWhereOthersRemovedWhatHeldIt() async throws {
        try await withBucket { provider, bucket in
            bucket.put("a", "huge")
            let held = Mutex<String?>(nil)
            bucket.before { request in
                guard request.path.hasPrefix("/bucket/b?") else { return }
                if request.path.contains("partNumber=12") { bucket.remove("b") }
                if request.method == "POST", request.path.contains("uploadId=") {
                    held.withLock { $0 = bucket.body("b") }
                }
            }
            try await move(provider)
            bucket.before { _ in }
            // A hollow object.
            #expect(held.withLock { $0 }?.utf8.count == 16)
            #expect(bucket.body("b") == "huge" && bucket.body("a") == nil)
        }
    }
}
