import PromiseKit
import PromiseWire
import Synchronization
import Testing

@Suite struct ScopedURLTests {
    private final class Stopped: Sendable { let scopes = Mutex<[Int64]>([]) }
    private final class Calls: Sendable { let count = Mutex(0) }

    private func found(_ path: String?, renewed: String? = nil) -> ResolvedBookmarkDocument {
        ResolvedBookmarkDocument(
            path: path, pathBytes: path, node: 2, kind: "folder", isReadOnly: true, isStale: renewed != nil,
            reason: path == nil ? "the item was deleted" : nil, renewed: renewed, attributes: [:])
    }

    @Test func accessIsCountedAndEndsWithTheLastOne() async throws {
        let calls = Calls()
        let answer = found("/a%20folder")
        let url = ScopedURL(bookmark: "first") { (text: String) async throws(PromiseError) in
            calls.count.withLock { $0 += 1 }
            return answer
        }
        #expect(!url.isAccessing && !url.stopAccessing())
        let access = try await url.startAccessing()
        #expect(access.path == Array("a folder".utf8) && access.isReadOnly)
        #expect(access.path(of: Array("b".utf8)) == Array("a folder/b".utf8))
        _ = try await url.startAccessing()
        #expect(url.stopAccessing() && url.isAccessing && url.stopAccessing() && !url.isAccessing)
        #expect(!url.stopAccessing() && calls.count.withLock { $0 } == 1)
        // The item may have moved since: the bookmark is resolved anew.
        _ = try await url.accessing { #expect($0.path == Array("a folder".utf8)) }
        #expect(!url.isAccessing && calls.count.withLock { $0 } == 2)
    }

    @Test func anAccessThatTheDaemonCountsIsStoppedWithTheLastOne() async throws {
        let stopped = Stopped()
        var answer = found("/granted/a")
        answer.scope = 7
        let scoped = answer
        let url = ScopedURL(
            bookmark: "first", stop: { scope in stopped.scopes.withLock { $0.append(scope) } }
        ) { (text: String) async throws(PromiseError) in scoped }
        _ = try await url.startAccessing()
        _ = try await url.startAccessing()
        #expect(url.stopAccessing() && stopped.scopes.withLock { $0 } == [])
        #expect(url.stopAccessing() && stopped.scopes.withLock { $0 } == [7])
        #expect(!url.stopAccessing() && stopped.scopes.withLock { $0 } == [7])
    }

    @Test func aStaleBookmarkIsRenewedAndOneThatLeadsNowhereGivesNoAccess() async throws {
        let (stale, gone) = (found("/a", renewed: "second"), found(nil))
        let url = ScopedURL(bookmark: "first") { (text: String) async throws(PromiseError) in stale }
        _ = try await url.startAccessing()
        #expect(url.bookmark == "second")
        let other = ScopedURL(bookmark: "first") { (text: String) async throws(PromiseError) in gone }
        await #expect(throws: PromiseError.self) { try await other.startAccessing() }
        #expect(!other.isAccessing)
    }
}
