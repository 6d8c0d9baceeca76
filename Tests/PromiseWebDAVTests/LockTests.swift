import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A lock lasts for half a minute, so that one whose token got lost is soon over, and for as long as it is used.
struct LockTests {
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private let traits: Set = ["locks", "putIsWhole", "moveKeepsTag", "honoursOverwrite"]

    /// What is asked of the server when it is slow to store a content of so many bytes.
    private func requests(
        byteCount: Int = 4, lockSeconds: UInt64 = 30, put: @escaping @Sendable () -> Void = {},
        renewal: @escaping @Sendable () -> Void = {}
    ) async throws -> [String] {
        let isStored = Mutex(false)
        let script: ScriptedServer.Script = { request in
            let tag = isStored.withLock { $0 } ? "\"2\"" : "\"1\""
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": return request.path == "/" ? rows(("/", collection)) : listing("/file", tag: tag, size: byteCount)
            case "HEAD": return reply("200 OK", ["ETag: \(tag)"], length: byteCount)
            case "LOCK" where request.body.isEmpty:
                renewal()
                return reply("200 OK")
            case "LOCK": return reply("200 OK", ["Lock-Token: <urn:token>"])
            case "PUT":
                put()
                isStored.withLock { $0 = true }
                return reply("204 No Content")
            default: return reply("204 No Content")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits, lockSeconds: lockSeconds)
        let source = try ConformanceSource([UInt8](repeating: 1, count: byteCount))
        let made = try await provider.modify(
            file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("1"))
        #expect(made.version == ContentVersion("2"))
        return server.requests.filter { $0.hasPrefix("LOCK") || $0.hasPrefix("UNLOCK") }
    }

    /// Where a lock makes an empty file of a free name, that was left to everybody's eyes when the
    /// upload was cancelled.
    @Test(.timeLimit(.minutes(1))) func anUploadThatIsCancelledLeavesNoFileOfItsLock() async throws {
        let writing = CancelledTask()
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": return request.path == "/" ? rows(("/", collection)) : reply("404 Not Found")
            case "HEAD": return reply("404 Not Found")
            case "LOCK": return reply("201 Created", ["Lock-Token: <urn:token>"])
            case "PUT":
                writing.cancel()
                usleep(500_000)
                return reply("503 Busy")
            default: return reply("204 No Content")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(
            server, remembering: traits.union(["lockMakesFile"]), lockSeconds: 30)
        let source = try ConformanceSource([1, 2, 3, 4])
        let task = Task { [file] in
            _ = try await provider.modify(
                file, changes: ItemChanges(), contents: source, baseVersion: nil)
        }
        writing.begin(task)
        await #expect(throws: (any Error).self) { try await task.value }
        let changes = server.requests.map { $0.prefix { $0 != " " } }
            .filter { ["LOCK", "PUT", "DELETE", "UNLOCK"].contains($0) }
        #expect(changes == ["LOCK", "PUT", "DELETE", "UNLOCK"])
    }

    /// 520 requests of the next mount were refused for locks of one that had ended in order.
    @Test func aLockIsGivenBackWhenTheMountEnds() async throws {
        for isSlowToLock in [true, false] {
            let hasBegun = Mutex(false)
            let mayGoOn = Mutex(false)
            @Sendable func wait() {
                hasBegun.withLock { $0 = true }
                let deadline = SystemClock().uptime() + .seconds(60)
                while !mayGoOn.withLock({ $0 }), SystemClock().uptime() < deadline { usleep(10_000) }
            }
            let script: ScriptedServer.Script = { request in
                switch request.method {
                case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
                case "PROPFIND": return request.path == "/" ? rows(("/", collection)) : listing("/file", tag: "\"1\"", size: 4)
                case "HEAD": return reply("200 OK", ["ETag: \"1\""], length: 4)
                case "LOCK":
                    if isSlowToLock { wait() }
                    return reply("200 OK", ["Lock-Token: <urn:token>"])
                case "PUT":
                    if !isSlowToLock { wait() }
                    return reply("204 No Content")
                default: return reply("204 No Content")
                }
            }
            let server = ScriptedServer(script)
            defer { server.stop() }
            let provider = try await provider(server, remembering: traits)
            let source = try ConformanceSource([1, 2, 3, 4])
            let file = file
            let writing = Task {
                _ = try? await provider.modify(
                    file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("1"))
            }
            while !hasBegun.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
            // The call is given up, and its process is about to end.
            writing.cancel()
            if isSlowToLock {
                Task {
                    try await Task.sleep(for: .milliseconds(300))
                    mayGoOn.withLock { $0 = true }
                }
            }
            await provider.letGo()
            #expect(server.requests.contains { $0.hasPrefix("UNLOCK") && $0.contains("<urn:token>") }, "\(isSlowToLock)")
            mayGoOn.withLock { $0 = true }
            await writing.value
            let count = server.requests.count
            await #expect(throws: ProviderError.self) {
                try await provider.modify(file, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("1"))
            }
            #expect(!server.requests.dropFirst(count).contains { $0.hasPrefix("LOCK") })
        }
    }

    /// Apache's file of locks brings one back that has ended; then its folder could not be moved or
    /// removed for half a minute.
    @Test(arguments: ["424 Failed Dependency", "423 Locked"])
    func aLockThatHasEndedInAFolderIsEndedAgainWhenTheFolderMoves(answer: String) async throws {
        let endCount = Mutex(0)
        let script: ScriptedServer.Script = { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): return rows(("/", collection))
            case ("PROPFIND", "/folder/"), ("PROPFIND", "/folder"): return rows(("/folder/", collection))
            case ("PROPFIND", "/moved/"): return rows(("/moved/", collection))
            case ("PROPFIND", "/folder/file"): return listing("/folder/file", tag: "\"1\"", size: 4)
            case ("PROPFIND", _): return reply("404 Not Found")
            case ("LOCK", _): return reply("200 OK", ["Lock-Token: <urn:token>"])
            case ("UNLOCK", "/folder/file"): endCount.withLock { $0 += 1 }
            case ("MOVE", _) where endCount.withLock { $0 } < 2: return reply(answer)
            case ("MOVE", _): return reply("201 Created")
            default: break
            }
            return reply("204 No Content")
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits)
        let folder = ItemReference(identifier: ItemIdentifier("/folder"), path: [FileName("folder")!])
        let inside = ItemReference(identifier: ItemIdentifier("/folder/file"), path: folder.path + [FileName("file")!])
        let source = try ConformanceSource([1, 2, 3, 4])
        _ = try? await provider.modify(inside, changes: ItemChanges(), contents: source, baseVersion: ContentVersion("1"))
        #expect(endCount.withLock { $0 } == 1)
        let changes = ItemChanges(place: (ItemReference(identifier: ItemIdentifier("/"), path: []), FileName("moved")!))
        _ = try? await provider.modify(
            folder, changes: changes, contents: nil, baseVersion: ContentVersion("folder"))
        let moves = server.requests.filter { $0.hasPrefix("MOVE") }
        #expect(moves.count == 2 && endCount.withLock { $0 } == 2)
    }

    @Test func aLockIsAskedForForHalfAMinute() async throws {
        let heads = try await self.requests()
        #expect(heads.count == 2 && heads[0].contains("Timeout: Second-30\r\n") && heads[1].hasPrefix("UNLOCK"))
    }

    /// There are servers that do not renew a lock while a PUT is under way.
    @Test func aLockForMuchContentLastsLonger() async throws {
        let heads = try await requests(byteCount: 1_000_000)
        #expect(heads.first?.contains("Timeout: Second-40\r\n") == true)
    }

    @Test func aLockIsRenewedWhileItIsUsed() async throws {
        let renewals = Mutex(0)
        let heads = try await requests(
            lockSeconds: 1,
            put: {
                let deadline = SystemClock().uptime() + .seconds(60)
                while renewals.withLock({ $0 }) < 3, SystemClock().uptime() < deadline { usleep(10_000) }
            },
            renewal: { renewals.withLock { $0 += 1 } })
        let renewed = heads.filter { $0.contains("If: <http://") }
        #expect(renewed.count >= 3 && renewed.allSatisfy { $0.contains("/file> (<urn:token>)") && $0.contains("Second-1\r\n") })
    }
}

/// A task that is cancelled when a server has got its request, which may be before anybody has it.
private final class CancelledTask: Sendable {
    private let state = Mutex<(task: Task<Void, any Error>?, isCancelled: Bool)>((nil, false))

    func begin(_ task: Task<Void, any Error>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            return state.task
        }?.cancel()
    }
}
