import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// Two files of one size that arrived within one tick of a server's clock had one tag. When they exchanged their names another
/// machine saw nothing of it, and what was written there on the base of the one replaced the other.
struct SameTagTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let metadata = Metadata(mode: 0o644, owner: 1, group: 2, modificationTime: Timestamp(nanoseconds: 5))
    private static let traits: Set = [
        "locks", "keepsProperties", "putIsWhole", "putsOnlyNew", "moveKeepsTag", "honoursOverwrite", "locksEndWithItem",
    ]

    /// A tag is remembered for seconds, and a busy machine may take longer for a test.
    private struct StandingClock: TimeSource {
        func now() -> Timestamp { SystemClock().now() }
        func uptime() -> Duration { .zero }
    }

    /// A server that makes tags of size and time, and whose clock ticks with each `period`th PUT.
    private final class Server: Sendable {
        private struct State {
            var files: [String: (content: String, tag: String)] = [:]
            var putCount = 0
            var methods: [String] = []
        }

        private let state = Mutex(State())
        private let period: Int
        /// Right before this PUT another client writes there.
        private let putOfOthers: Int?

        init(period: Int, putOfOthers: Int? = nil) {
            (self.period, self.putOfOthers) = (period, putOfOthers)
        }

        var tags: [String] { state.withLock { $0.files.values.map(\.tag) } }
        func content(_ path: String) -> String? { state.withLock { $0.files[path]?.content } }
        /// Since the last call.
        func methods() -> [String] { state.withLock { state in defer { state.methods = [] }; return state.methods } }

        func answer(_ request: ScriptedServer.Request) -> String {
            state.withLock { state in
                state.methods.append(request.method)
                let path = String(request.path)
                switch request.method {
                case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
                case "PROPFIND" where path.hasSuffix("/"): return rows((path, keepingCollection))
                case "PROPFIND":
                    guard let file = state.files[path] else { return reply("404 Not Found") }
                    return listing(path, tag: file.tag, size: file.content.utf8.count)
                case "PUT":
                    state.putCount += 1
                    if state.putCount == putOfOthers { state.files[path] = ("theirs", "\"6-x\"") }
                    let lines = request.head.split(separator: "\r\n")
                    let wanted = lines.first { $0.lowercased().hasPrefix("if-match:") }
                    if let wanted, !wanted.hasSuffix(state.files[path]?.tag ?? "-") {
                        return reply("412 Precondition Failed")
                    }
                    let tag = "\"\(request.body.utf8.count)-\(state.putCount / period)\""
                    state.files[path] = (request.body, tag)
                    return reply("201 Created")
                case "GET", "HEAD":
                    guard let file = state.files[path] else { return reply("404 Not Found") }
                    let body = request.method == "GET" ? file.content : ""
                    return reply("200 OK", ["ETag: \(file.tag)"], body, length: file.content.utf8.count)
                case "MOVE":
                    let line = request.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("destination:") } ?? ""
                    let target = "/" + (line.split(separator: "/").last ?? "")
                    state.files[target] = state.files.removeValue(forKey: path)
                    return reply("201 Created")
                case "LOCK": return reply("200 OK", ["Lock-Token: <opaquelocktoken:1>"])
                case "MKCOL": return reply("201 Created")
                case "PROPPATCH": return rows()
                default: return reply("204 No Content")
                }
            }
        }
    }

    private func withServer(
        period: Int, putOfOthers: Int? = nil, traits: Set<String> = Self.traits,
        _ body: (WebDAVProvider, Server) async throws -> Void
    ) async throws {
        let fake = Server(period: period, putOfOthers: putOfOthers)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits, clock: StandingClock())
        _ = fake.methods()
        try await body(provider, fake)
    }

    private func create(_ provider: WebDAVProvider, _ name: String, _ text: String, target: String? = nil) async throws -> Item {
        let item = NewItem(
            name: FileName(name)!, kind: target == nil ? .file : .link, metadata: metadata, target: target.map { Array($0.utf8) })
        return try await provider.create(
            item, in: root, contents: target == nil ? try ConformanceSource(Array(text.utf8)) : nil)
    }

    @Test(arguments: [4, 20_000]) func twoFilesThatArriveInOneTickHaveTwoVersions(byteCount: Int) async throws {
        try await withServer(period: 3) { provider, server in
            let rest = String(repeating: "x", count: byteCount - 1)
            var versions: [ContentVersion] = []
            for letter in ["a", "b", "c", "d"] { versions.append(try await create(provider, letter, letter + rest).version) }
            #expect(Set(versions).count == 4 && Set(server.tags).count == 4, "\(versions)")
            for letter in ["a", "b", "c", "d"] { #expect(server.content("/" + letter) == letter + rest) }
        }
    }

    @Test func aSaveHasNoTagOfAnotherFileEither() async throws {
        try await withServer(period: 3) { provider, server in
            let first = try await create(provider, "a", "one")
            _ = try await create(provider, "b", "two")
            let reference = ItemReference(identifier: first.identifier, path: [first.name])
            let source = try ConformanceSource(Array("new".utf8))
            let saved = try await provider.modify(reference, changes: ItemChanges(), contents: source, baseVersion: first.version)
            #expect(saved.version != first.version && Set(server.tags).count == 2 && server.content("/a") == "new")
        }
    }

    /// It was sent again without a condition, over what others had written meanwhile.
    @Test func whatOthersWriteBetweenTwoAttemptsWithoutALockStays() async throws {
        let traits: Set = [
            "keepsProperties", "putIsWhole", "putsOnlyNew", "moveKeepsTag", "honoursOverwrite",
            "honoursConditionsOnPut",
        ]
        try await withServer(period: 1_000, putOfOthers: 3, traits: traits) { provider, server in
            let first = try await create(provider, "a", "one")
            let reference = ItemReference(identifier: first.identifier, path: [first.name])
            let source = try ConformanceSource(Array("new".utf8))
            // It has the tag of what was there.
            await #expect {
                _ = try await provider.modify(
                    reference, changes: ItemChanges(), contents: source,
                    baseVersion: first.version)
            } throws: {
                ($0 as? ProviderError)?.code == .conflict
            }
            #expect(server.content("/a") == "theirs")
        }
    }

    @Test func aLinkAndAFileWithItsTargetAsContentAreTwo() async throws {
        try await withServer(period: 3) { provider, server in
            _ = try await create(provider, "link", "", target: "text")
            _ = try await create(provider, "file", "text")
            #expect(Set(server.tags).count == 2)
        }
    }

    @Test func oneContentMayHaveOneTagAndCostsNothing() async throws {
        try await withServer(period: 1_000) { provider, server in
            for name in ["a", "b", "c"] {
                _ = try await create(provider, name, "text")
                #expect(server.methods() == ["PUT", "GET", "PROPPATCH"])
            }
        }
    }

    /// Its ticks may be seconds: then nothing is told apart, and no file waits for it.
    @Test func aServerWhoseClockStandsStillIsNotWaitedForWithEachFile() async throws {
        try await withServer(period: 1_000) { provider, server in
            _ = try await create(provider, "a", "one!")
            _ = try await create(provider, "b", "two!")
            _ = server.methods()
            for name in ["c", "d"] {
                _ = try await create(provider, name, "text\(name)")
                #expect(server.methods() == ["PUT", "GET", "PROPPATCH"])
            }
        }
    }
}
