import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// The login page of a guest network answers everything with 200. What is done is what the protocol says is done, or what a
/// look shows.
struct StrangerTests {
    private static let page = reply(
        "200 OK", ["Content-Type: text/html"], "<!DOCTYPE html><html><title>Accept the terms</title></html>")
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private let folder = ItemReference(identifier: ItemIdentifier("/folder"), path: [FileName("folder")!])
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let metadata = Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))

    /// Of a server whose requests of one method somebody else answers. `does`: it is done all the same, by a server that says
    /// so in its own way.
    private func code(
        of method: String, does: Bool = false, _ traits: Set<String> = ["keepsProperties"],
        _ body: (WebDAVProvider) async throws -> Void
    ) async throws -> ProviderError.Code? {
        let isDone = Mutex(false)
        let script: ScriptedServer.Script = { request in
            if request.method == method {
                if does { isDone.withLock { $0 = true } }
                return StrangerTests.page
            }
            let (isMade, isGone) = isDone.withLock { ($0 && method != "DELETE", $0 && method == "DELETE") }
            switch (request.method, request.path) {
            case ("OPTIONS", _): return reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): return rows(("/", keepingCollection))
            case ("PROPFIND", "/folder/"), ("PROPFIND", "/folder"):
                return isGone ? reply("404 Not Found") : rows(("/folder/", collection))
            case ("PROPFIND", "/file"): return isGone ? reply("404 Not Found") : listing("/file")
            case ("PROPFIND", _): return isMade ? rows((request.path, keepingCollection)) : reply("404 Not Found")
            case ("PROPPATCH", _): return rows((request.path, ""))
            default: return reply("204 No Content")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits)
        do {
            try await body(provider)
            return nil
        } catch {
            return (error as? ProviderError)?.code
        }
    }

    @Test(arguments: [["deletesOnlyMatching"], []] as [Set<String>])
    func aLoginPageRemovesNoFile(traits: Set<String>) async throws {
        let found = try await code(of: "DELETE", traits) {
            try await $0.delete(file, baseVersion: ContentVersion("1"))
        }
        #expect(found == .retry)
    }

    @Test func aLoginPageRemovesNoFolder() async throws {
        let found = try await code(of: "DELETE") { try await $0.delete(folder, baseVersion: ContentVersion("folder")) }
        #expect(found == .retry)
    }

    @Test func whatIsGoneAfterAnOddAnswerIsGone() async throws {
        let found = try await code(of: "DELETE", does: true) {
            try await $0.delete(folder, baseVersion: ContentVersion("folder"))
        }
        #expect(found == nil)
    }

    @Test(arguments: [false, true]) func aLoginPageMakesNoFolder(does: Bool) async throws {
        let item = NewItem(name: FileName("new")!, kind: .folder, metadata: metadata)
        let found = try await code(of: "MKCOL", does: does) { _ = try await $0.create(item, in: root, contents: nil) }
        #expect(found == (does ? nil : .retry))
    }

    @Test func aLoginPageKeepsNoMode() async throws {
        let found = try await code(of: "PROPPATCH") {
            _ = try await $0.modify(
                file, changes: ItemChanges(metadata: metadata), contents: nil, baseVersion: ContentVersion("1"))
        }
        #expect(found == .retry)
    }

    @Test func aLoginPageMovesNothing() async throws {
        var changes = ItemChanges()
        changes.place = (root, FileName("other")!)
        let found = try await code(of: "MOVE", ["honoursOverwrite"]) { [changes] in
            _ = try await $0.modify(file, changes: changes, contents: nil, baseVersion: ContentVersion("1"))
        }
        #expect(found == .retry)
    }

    /// It has the size of what is there, too.
    @Test func aLoginPageTakesNoContent() async throws {
        let contents = try MemorySource(Array("text".utf8))
        let found = try await code(of: "PUT", ["putIsWhole", "tagsTellContent"]) {
            _ = try await $0.modify(file, changes: ItemChanges(), contents: contents, baseVersion: ContentVersion("1"))
        }
        #expect(found == .retry)
    }

    /// It was taken for the tag of what was sent, which then was nowhere but in the cache.
    @Test func theTagOfALoginPageIsNotThatOfWhatWasPut() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", "/"): rows(("/", keepingCollection))
            case ("PROPFIND", "/file"): listing("/file")
            case ("PUT", _):
                reply("200 OK", ["Content-Type: text/html; charset=utf-8", "ETag: \"page\""], "<html>Accept the terms</html>")
            case ("PROPFIND", _): reply("404 Not Found")
            default: reply("204 No Content")
            }
        }
        defer { server.stop() }
        let traits: Set = ["putIsWhole", "putTellsTag", "tagsTellContent", "listsTags", "keepsProperties"]
        let provider = try await provider(server, remembering: traits)
        let item = NewItem(name: FileName("new")!, kind: .file, metadata: metadata)
        for old in [false, true] {
            let contents = try MemorySource(Array("text".utf8))
            do {
                if old {
                    _ = try await provider.modify(
                        file, changes: ItemChanges(), contents: contents, baseVersion: ContentVersion("1"))
                } else {
                    _ = try await provider.create(item, in: root, contents: contents)
                }
                Issue.record("it was believed")
            } catch {
                #expect(error.code == .retry, "\(error)")
            }
        }
    }
}
