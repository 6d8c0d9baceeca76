import Foundation
import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// A server that honours conditions on PUT, and none on copies and deletions.
struct HollowObjectTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])

    private func withBucket(
        honoursConditions: Bool = false, clock: any TimeSource = SystemClock(),
        _ body: (S3Provider, Bucket) async throws -> Void
    ) async throws {
        let bucket = Bucket(honoursConditions: honoursConditions)
        let server = ScriptedServer { bucket.answer($0) }
        defer { server.stop() }
        let provider = try S3Provider(
            location: S3Location(parsing: "s3://bucket/?endpoint=http://127.0.0.1:\(server.port)&anonymous=true"),
            credentials: AccessKeySource(own: CredentialSource()), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: clock)
        try await provider.connect()
        try await body(provider, bucket)
    }

    private func reference(_ name: String) -> ItemReference {
        ItemReference(identifier: ItemIdentifier("/" + name), path: [FileName(name)!])
    }

    /// It was copied over, as the name had been looked at and was free.
    @Test func whatOthersMakeAtTheNewNameRightBeforeTheCopyIsNotLost() async throws {
        try await withBucket { provider, bucket in
            bucket.put("a", "ours")
            let isTaken = Mutex(false)
            bucket.before { request in
                guard request.method == "PUT", request.head.lowercased().contains("x-amz-copy-source:") else { return }
                isTaken.withLock { $0 = bucket.make("b", "theirs") }
            }
            let changes = ItemChanges(place: (parent: root, name: FileName("b")!))
            _ = try? await provider.modify(reference("a"), changes: changes, contents: nil, baseVersion: nil)
            bucket.before { _ in }
            if isTaken.withLock({ $0 }) {
                #expect(bucket.body("b") == "theirs")
            } else {
                #expect(bucket.body("b") == "ours" && bucket.body("a") == nil)
            }
        }
    }

    /// It was deleted, as it had been looked at before; and where an empty file was to be deleted,
    /// as what stood in its place had the version of every empty file.
    @Test(arguments: ["old", ""])
    func whatOthersWriteRightBeforeADeletionIsNotLost(text: String) async throws {
        try await withBucket { provider, bucket in
            bucket.put("a", text)
            let tag = Bucket.tag(text)
            let isTaken = Mutex(false)
            bucket.before { request in
                guard request.method == "DELETE" else { return }
                isTaken.withLock { $0 = bucket.replace("a", tag, "theirs") }
            }
            try? await provider.delete(reference("a"), baseVersion: ContentVersion(tag))
            bucket.before { _ in }
            #expect(bucket.body("a") == (isTaken.withLock { $0 } ? "theirs" : nil))
        }
    }

    /// What another machine saved in a folder while it was moved stayed in the old one, beside the
    /// copy of what it had been.
    @Test(arguments: [true, false], ["edited", "old"])
    func whatOthersWriteRightBeforeItIsMovedWithItsFolderIsAtOnePlace(
        honoursConditions: Bool, text: String
    ) async throws {
        try await withBucket(honoursConditions: honoursConditions) { provider, bucket in
            for name in ["a", "b"] { bucket.put("old/" + name, "old") }
            let isTaken = Mutex(false)
            bucket.before { request in
                let isCopy = request.head.lowercased().contains("x-amz-copy-source:")
                guard request.method == "DELETE" || request.method == "PUT" && !isCopy,
                    request.path.hasSuffix("/old/a")
                else { return }
                isTaken.withLock { isTaken in
                    if !isTaken { isTaken = bucket.replace("old/a", Bucket.tag("old"), text) }
                }
            }
            let changes = ItemChanges(place: (parent: root, name: FileName("new")!))
            _ = try await provider.modify(
                reference("old"), changes: changes, contents: nil, baseVersion: nil)
            bucket.before { _ in }
            #expect(isTaken.withLock { $0 })
            #expect(bucket.body("new/a") == text && bucket.body("old/a") == nil)
            #expect(bucket.body("new/b") == "old" && bucket.body("old/b") == nil)
        }
    }

    /// It was to get a mode at its new place, waited for its own turn there, and never returned.
    @Test(.timeLimit(.minutes(1)))
    func aFolderThatOthersRemoveWhileItMovesIsGone() async throws {
        try await withBucket(honoursConditions: true) { provider, bucket in
            bucket.put("old/a", "text")
            bucket.before { request in
                // The look at what has come of it.
                guard request.path.contains("list-type"), request.path.contains("max-keys=1&"),
                    request.path.contains("prefix=new%2F"), bucket.body("old/a") == nil
                else { return }
                bucket.remove("new/a")
            }
            let metadata = Metadata(
                mode: 0o700, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
            let changes = ItemChanges(place: (parent: root, name: FileName("new")!), metadata: metadata)
            let error = await #expect(throws: ProviderError.self) {
                try await provider.modify(reference("old"), changes: changes, contents: nil, baseVersion: nil)
            }
            bucket.before { _ in }
            #expect(error?.code == .notFound)
            #expect(bucket.body("old/a") == nil && bucket.body("new/a") == nil)
        }
    }

    /// A daemon was killed between putting a hollow object in the place of what it had copied and deleting that: the old
    /// folder was shown for a minute, empty.
    @Test(arguments: [true, false]) func aMoveThatBrokeOffBeforeADeletionLeavesNothing(isFolder: Bool) async throws {
        try await withBucket { provider, bucket in
            let (old, new) = isFolder ? ("old/a", "new/a") : ("old", "new")
            bucket.put(old, "text")
            bucket.breakDeletions(true)
            let changes = ItemChanges(place: (parent: root, name: FileName("new")!))
            await #expect(throws: ProviderError.self) {
                try await provider.modify(reference("old"), changes: changes, contents: nil, baseVersion: nil)
            }
            #expect(bucket.isHollow(old))
            bucket.breakDeletions(false)
            // Whoever looks at the folder ends the move.
            let items = try await provider.enumerateItems(in: root, page: nil).items
            #expect(items.map(\.name.display) == ["new"])
            #expect(bucket.body(old) == nil && bucket.body(new) == "text")
        }
    }

    /// Three times the server said no, and then it was told as something that cannot be uploaded.
    /// One without a time was as old as 1970, and overwritten at once.
    @Test(.timeLimit(.minutes(2)), arguments: [false, true], [Bucket.Age.new, .untold])
    func aPlaceThatAnotherMachineHasForAMomentIsWaitedFor(isMove: Bool, age: Bucket.Age) async throws {
        try await withBucket { provider, bucket in
            bucket.put("a", "new")
            bucket.isAged(age)
            bucket.put("left", "", ["x-amz-meta-promisefs-hollow: 1"])
            async let removed: Void = {
                try await Task.sleep(for: .milliseconds(900))
                bucket.remove("left")
            }()
            if isMove {
                let changes = ItemChanges(place: (parent: root, name: FileName("left")!))
                _ = try await provider.modify(reference("a"), changes: changes, contents: nil, baseVersion: nil)
            } else {
                let metadata = Metadata(
                    mode: 0o644, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
                let file = NewItem(name: FileName("left")!, kind: .file, metadata: metadata)
                _ = try await provider.create(file, in: root, contents: try MemorySource(Array("new".utf8)))
            }
            try await removed
            #expect(bucket.body("left") == "new")
        }
    }

    private struct FastClock: TimeSource {
        func now() -> Timestamp { SystemClock().now().advanced(by: .seconds(120)) }
        func uptime() -> Duration { SystemClock().uptime() }
    }

    /// By a clock that is two minutes fast it had been there for two minutes.
    @Test(.timeLimit(.minutes(1)))
    func aFastClockTakesNoPlaceThatAnotherMachineHasForAMoment() async throws {
        try await withBucket(clock: FastClock()) { provider, bucket in
            bucket.isAged(.new)
            bucket.put("left", "", ["x-amz-meta-promisefs-hollow: 1"])
            #expect(try await provider.enumerateItems(in: root, page: nil).items.isEmpty)
            #expect(bucket.isHollow("left"), "whoever lists removes no other's")
            let file = NewItem(
                name: FileName("left")!, kind: .file,
                metadata: Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero))
            async let made = provider.create(
                file, in: root, contents: try MemorySource(Array("new".utf8)))
            try await Task.sleep(for: .milliseconds(900))
            #expect(bucket.isHollow("left"), "whoever writes waits for it")
            bucket.remove("left")
            _ = try await made
            #expect(bucket.body("left") == "new")
        }
    }

    /// Another machine had waited for the place as long, and what it put there was deleted.
    @Test(arguments: ["PUT", "DELETE"])
    func whatOthersPutInThePlaceOfWhatADeadDaemonHasLeftStays(moment: String) async throws {
        try await withBucket { provider, bucket in
            let left = "00000000000000ff"
            bucket.put("left", left, ["x-amz-meta-promisefs-hollow: 1"])
            let isTaken = Mutex(false)
            bucket.before { request in
                guard request.method == moment, request.path.hasSuffix("/left") else { return }
                isTaken.withLock { $0 = $0 || bucket.replace("left", Bucket.tag(left), "theirs") }
            }
            // Who lists removes it.
            _ = try await provider.enumerateItems(in: root, page: nil)
            bucket.before { _ in }
            #expect(bucket.body("left") == (isTaken.withLock { $0 } ? "theirs" : nil))
        }
    }

    /// Who listed the folder deleted the copy for what a dead daemon had left there, and the move its source.
    @Test(arguments: ["if-match:", "x-amz-copy-source:"])
    func whatIsMovedToWhereADeadDaemonHasLeftSomethingIsNotLost(moment: String) async throws {
        try await withBucket { provider, bucket in
            let left = "00000000000000ff"
            bucket.put("left", left, ["x-amz-meta-promisefs-hollow: 1"])
            bucket.put("a", "ours")
            // Another machine lists, and removes what was left: it puts one of its own there first.
            let isTaken = Mutex(false)
            bucket.before { request in
                guard request.method == "PUT", request.path.hasSuffix("/left"),
                    request.head.lowercased().contains("\r\n" + moment)
                else { return }
                isTaken.withLock {
                    $0 = $0 || bucket.replace(
                        "left", Bucket.tag(left), "00000000000000fe", ["x-amz-meta-promisefs-hollow: deleted"])
                }
            }
            let changes = ItemChanges(place: (parent: root, name: FileName("left")!))
            _ = try? await provider.modify(reference("a"), changes: changes, contents: nil, baseVersion: nil)
            bucket.before { _ in }
            if isTaken.withLock({ $0 }) { bucket.remove("left") }
            #expect(bucket.body("a") == "ours" || bucket.body("left") == "ours")
        }
    }

    /// Who went on with a move took what was put there for its deletion as its own, and did not wait.
    @Test func whatIsPutForADeletionIsNoMovesOwn() async throws {
        try await withBucket { provider, bucket in
            bucket.put("left", "00000000000000ff", ["x-amz-meta-promisefs-hollow: 1"])
            let heads = Mutex<[String]>([])
            bucket.before { request in
                guard request.method == "PUT" else { return }
                heads.withLock { $0.append(request.head.lowercased()) }
            }
            _ = try await provider.enumerateItems(in: root, page: nil)
            bucket.before { _ in }
            #expect(heads.withLock { $0.first?.contains("x-amz-meta-promisefs-hollow: deleted") == true })
        }
    }

    @Test func whatADeadDaemonHasLeftIsNothingAndMakesWay() async throws {
        try await withBucket { provider, bucket in
            bucket.put("left", "", ["x-amz-meta-promisefs-hollow: 1"])
            #expect(try await provider.enumerateItems(in: root, page: nil).items.isEmpty)
            bucket.put("left", "", ["x-amz-meta-promisefs-hollow: 1"])
            let metadata = Metadata(
                mode: 0o644, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
            let file = NewItem(name: FileName("left")!, kind: .file, metadata: metadata)
            _ = try await provider.create(file, in: root, contents: try MemorySource(Array("new".utf8)))
            #expect(bucket.body("left") == "new")
        }
    }
}

/// Objects in memory.
final class Bucket: Sendable {
    private struct Object {
        var body: String
        var metadata: [String]
    }

    private let objects = Mutex<[String: Object]>([:])
    private let hook = Mutex<@Sendable (ScriptedServer.Request) -> Void>({ _ in })

    private let hasBrokenDeletions = Mutex(false)
    private let refusedDeletions = Mutex<Set<String>>([])
    private let age = Mutex(Age.old)
    /// Of copies and deletions, too.
    private let honoursConditions: Bool
    /// Nil: it takes nothing in parts.
    private let parts: BucketParts?

    init(honoursConditions: Bool = false, takesParts: Bool = false) {
        self.honoursConditions = honoursConditions
        parts = takesParts ? BucketParts() : nil
    }

    /// When the server says that objects were made.
    enum Age { case old, new, untold }
    func isAged(_ age: Age) { self.age.withLock { $0 = age } }
    func breakDeletions(_ isBroken: Bool) { hasBrokenDeletions.withLock { $0 = isBroken } }
    func refuseDeletion(of key: String) { refusedDeletions.withLock { _ = $0.insert(key) } }
    func before(_ body: @escaping @Sendable (ScriptedServer.Request) -> Void) { hook.withLock { $0 = body } }
    func body(_ key: String) -> String? { objects.withLock { $0[key]?.body } }
    func put(_ key: String, _ body: String, _ metadata: [String] = []) {
        objects.withLock { $0[key] = Object(body: body, metadata: metadata) }
    }

    func isHollow(_ key: String) -> Bool {
        let metadata = objects.withLock { $0[key]?.metadata } ?? []
        return metadata.contains { $0.lowercased().hasPrefix("x-amz-meta-promisefs-hollow:") }
    }

    func remove(_ key: String) { objects.withLock { $0[key] = nil } }

    /// As another client would on a condition; false when that does not hold.
    func make(_ key: String, _ body: String) -> Bool {
        objects.withLock { objects in
            guard objects[key] == nil else { return false }
            objects[key] = Object(body: body, metadata: [])
            return true
        }
    }

    func replace(_ key: String, _ tag: String, _ body: String, _ metadata: [String] = []) -> Bool {
        objects.withLock { objects in
            guard let object = objects[key], Bucket.tag(object.body) == tag else { return false }
            objects[key] = Object(body: body, metadata: metadata)
            return true
        }
    }

    func answer(_ request: ScriptedServer.Request) -> String {
        hook.withLock { $0 }(request)
        let halves = request.path.dropFirst("/bucket".count).split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = halves.count > 1 ? String(halves[1]) : ""
        let key = Bucket.decoded(halves[0].drop { $0 == "/" })
        if let answer = parts?.answer(request, key, query, self) { return answer }
        switch request.method {
        case "GET" where query.contains("list-type"): return listing(query)
        case "GET", "HEAD":
            guard let object = objects.withLock({ $0[key] }) else { return reply("404 Not Found") }
            let isHead = request.method == "HEAD"
            let size = Bucket.size(object.body)
            return reply("200 OK", headers(object), isHead ? "" : object.body, length: size)
        case "PUT" where !query.contains("partNumber"): return put(request, key)
        case "DELETE" where hasBrokenDeletions.withLock { $0 }: return reply("503 Slow Down")
        case "DELETE" where refusedDeletions.withLock { $0.contains(key) }:
            return reply("403 Forbidden")
        case "DELETE":
            let wanted = honoursConditions ? Bucket.value("if-match", request) : nil
            return objects.withLock { objects in
                if let wanted, wanted.filter({ $0 != "\"" }) != objects[key].map({ Bucket.tag($0.body) }) {
                    return reply(objects[key] == nil ? "404 Not Found" : "412 Precondition Failed")
                }
                objects[key] = nil
                return reply("204 No Content")
            }
        default: return reply("501 Not Implemented")
        }
    }

    static func value(_ name: String, _ request: ScriptedServer.Request) -> String? {
        let lines = request.head.split(separator: "\r\n").map(String.init)
        return lines.first { $0.lowercased().hasPrefix(name + ":") }.map {
            $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
        }
    }

    private func put(_ request: ScriptedServer.Request, _ key: String) -> String {
        let lines = request.head.split(separator: "\r\n").map(String.init)
        func value(_ name: String) -> String? { Bucket.value(name, request) }
        let metadata = lines.filter { $0.lowercased().hasPrefix("x-amz-meta-") }
        return objects.withLock { objects in
            if let source = value("x-amz-copy-source") {
                guard let object = objects[Bucket.decoded(source.dropFirst("/bucket/".count))] else {
                    return reply("404 Not Found")
                }
                let wanted = value("x-amz-copy-source-if-match")?.filter { $0 != "\"" }
                let isTaken = value("if-none-match") != nil && objects[key] != nil
                if honoursConditions, isTaken || wanted.map({ $0 != Bucket.tag(object.body) }) == true {
                    return reply("412 Precondition Failed")
                }
                let isReplacing = value("x-amz-metadata-directive") == "REPLACE"
                objects[key] = Object(body: object.body, metadata: isReplacing ? metadata : object.metadata)
                let result = "<CopyObjectResult><ETag>\(Bucket.tag(object.body))</ETag></CopyObjectResult>"
                return reply("200 OK", [], result)
            }
            let there = objects[key].map { Bucket.tag($0.body) }
            if value("if-none-match") != nil, there != nil { return reply("412 Precondition Failed") }
            if let wanted = value("if-match"), wanted.filter({ $0 != "\"" }) != there {
                return reply(there == nil ? "404 Not Found" : "412 Precondition Failed")
            }
            objects[key] = Object(body: request.body, metadata: metadata)
            return reply("200 OK", ["ETag: \(Bucket.tag(request.body))"])
        }
    }

    private func headers(_ object: Object) -> [String] {
        let age = age.withLock { $0 }
        // As listings have it.
        let made = age == .new ? time(nil) : 1_795_313_598
        let now = age == .new ? made : made + 86_400
        let rest = ["Date: \(date(now))", "ETag: \(Bucket.tag(object.body))"] + object.metadata
        return age == .untold ? rest : ["Last-Modified: \(date(made))"] + rest
    }

    private func date(_ time: time_t) -> String {
        var (seconds, parts) = (time, tm())
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func listing(_ query: String) -> String {
        let prefix = query.split(separator: "&").first { $0.hasPrefix("prefix=") }.map {
            Bucket.decoded($0.dropFirst("prefix=".count))
        } ?? ""
        let isFlat = !query.contains("delimiter=")
        var rows = ""
        var folders: Set<String> = []
        for (key, object) in objects.withLock({ $0 }).sorted(by: { $0.key < $1.key })
        where key.hasPrefix(prefix) {
            if !isFlat, let slash = key.dropFirst(prefix.count).firstIndex(of: "/") {
                folders.insert(String(key[...slash]))
                continue
            }
            rows += "<Contents><Key>\(key)</Key><LastModified>2026-11-22T02:13:18.000Z</LastModified>"
            let (tag, size) = (Bucket.tag(object.body), Bucket.size(object.body))
            rows += "<ETag>\(tag)</ETag><Size>\(size)</Size></Contents>"
        }
        for folder in folders.sorted() { rows += "<CommonPrefixes><Prefix>\(folder)</Prefix></CommonPrefixes>" }
        return reply("200 OK", [], "<ListBucketResult>\(rows)<IsTruncated>false</IsTruncated></ListBucketResult>")
    }

    /// One is said to be larger than a copy may be that is not in parts.
    static func size(_ body: String) -> Int { body == "huge" ? 6 << 30 : body.utf8.count }

    /// Of how it begins: of what is large that takes no time.
    static func tag(_ body: String) -> String {
        let hash = body.utf8.prefix(1 << 16).reduce(UInt64(14_695_981_039_346_656_037)) {
            ($0 ^ UInt64($1)) &* 1_099_511_628_211
        }
        return String(hash, radix: 16)
    }

    static func decoded(_ text: some StringProtocol) -> String {
        String(decoding: PercentEncoding.decoded(text) ?? [], as: UTF8.self)
    }
}
