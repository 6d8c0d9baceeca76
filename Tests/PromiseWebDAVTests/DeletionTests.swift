import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A file is removed by one request where the server looks at the tag; a lock and looks are for where it does not.
struct DeletionTests {
    private static let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private let traits: Set = ["locks", "deletesOnlyMatching"]

    /// The methods of what was asked of a server that answers a condition so, while `count` files are removed.
    private func requests(
        _ traits: Set<String>, answer: String, version: String = "1", count: Int = 1
    ) async throws -> [String] {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": request.path == "/" ? rows(("/", collection)) : listing("/file")
            case "LOCK": reply("200 OK", ["Lock-Token: <urn:token>"])
            case "DELETE" where request.head.contains("If-Match: \"\(version)\""): reply(answer)
            default: reply("204 No Content")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits)
        let before = server.requests.count
        for _ in 0..<count { try await provider.delete(Self.file, baseVersion: ContentVersion(version)) }
        return server.requests.dropFirst(before).map { String($0.prefix { $0 != " " }) }
    }

    @Test func aFileIsRemovedByOneRequest() async throws {
        #expect(try await requests(traits, answer: "204 No Content") == ["DELETE"])
    }

    private let careful = ["LOCK", "PROPFIND", "DELETE", "UNLOCK"]

    @Test func aServerThatTakesAnyTagIsAskedUnderALock() async throws {
        #expect(try await requests(["locks"], answer: "204 No Content") == careful)
        let ending: Set = ["locks", "locksEndWithItem"]
        #expect(try await requests(ending, answer: "204 No Content") == Array(careful.dropLast()))
        #expect(try await requests([], answer: "204 No Content") == ["PROPFIND", "DELETE"], "it has no locks either")
    }

    /// Apache, in a file's first second; a lock of another program; a file that became a folder.
    @Test(arguments: ["412 Precondition Failed", "423 Locked", "404 Not Found", "301 Moved Permanently", "207 Multi-Status"])
    func whatIsNotDoneForATagIsLookedAt(answer: String) async throws {
        #expect(try await requests(traits, answer: answer) == ["DELETE"] + careful)
    }

    /// Apache matches no tag in `If-Match` of a file that it has for less than a second: five more requests.
    @Test func aFileIsRemovedByOneRequestAlsoInItsFirstSecond() async throws {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": request.path == "/" ? rows(("/", collection)) : listing("/file")
            case "DELETE" where request.head.contains("/file> ([\"1\"])"): reply("204 No Content")
            default: reply("412 Precondition Failed")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits.union(["deletesOnlyTagged"]))
        let before = server.requests.count
        try await provider.delete(Self.file, baseVersion: ContentVersion("1"))
        #expect(server.requests.dropFirst(before).map { String($0.prefix { $0 != " " }) } == ["DELETE"])
    }

    /// Where the server sees itself that it is the version that is meant, nobody looks before.
    @Test(arguments: [false, true]) func aRenameCostsTwoRequests(isChanged: Bool) async throws {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND":
                request.path == "/" ? rows(("/", keepingCollection)) : listing(request.path, tag: isChanged ? "\"2\"" : "\"1\"")
            case "MOVE" where !isChanged && request.head.contains("/file> ([\"1\"])"): reply("201 Created")
            case "MOVE": reply("412 Precondition Failed")
            default: reply("500 Internal Server Error")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["locks", "honoursOverwrite", "movesOnlyTagged"])
        let before = server.requests.count
        let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
        let changes = ItemChanges(place: (parent: root, name: FileName("new")!))
        do throws(ProviderError) {
            let version = ContentVersion("1")
            let moved = try await provider.modify(Self.file, changes: changes, contents: nil, baseVersion: version)
            #expect(!isChanged && moved.version == version && moved.name == FileName("new"))
        } catch {
            #expect(isChanged && error.code == .conflict)
        }
        #expect(server.requests.dropFirst(before).map { String($0.prefix { $0 != " " }) } == ["MOVE", "PROPFIND"])
    }

    private static let folder = ItemReference(identifier: ItemIdentifier("/folder"), path: [FileName("folder")!])

    /// Of a server that has an empty folder: what was asked while that was removed and, if `makesAnew`, made anew.
    private func requests(
        makesAnew: Bool = false, _ answer: @escaping @Sendable (ScriptedServer.Request, _ count: Int) -> String?
    ) async throws -> [String] {
        let counts = Mutex<[String: Int]>([:])
        let script: ScriptedServer.Script = { request in
            let count = counts.withLock { counts in
                counts[request.method, default: 0] += 1
                return counts[request.method] ?? 0
            }
            if let answer = answer(request, count) { return answer }
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND" where makesAnew && counts.withLock { $0["DELETE"] == 1 && $0["MKCOL", default: 0] < 2 }:
                return reply("404 Not Found")
            case "PROPFIND": return rows((request.path == "/" ? "/" : "/folder/", collection))
            case "LOCK": return reply("200 OK", ["Lock-Token: <urn:token\(count)>"])
            case "MKCOL": return reply("201 Created")
            default: return reply("204 No Content")
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["locks", "locksEndWithItem"])
        let before = server.requests.count
        try await provider.delete(Self.folder, baseVersion: ContentVersion("folder"))
        if makesAnew {
            let metadata = Metadata(mode: 0o755, owner: 1, group: 2, modificationTime: .zero)
            let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
            let item = NewItem(name: FileName("folder")!, kind: .folder, metadata: metadata)
            #expect(try await provider.create(item, in: root, contents: nil).kind == .folder)
        }
        return server.requests.dropFirst(before).map { String($0.prefix { $0 != " " }) }
    }

    @Test func aLockThatEndsWithItsFolderIsNotGivenBack() async throws {
        #expect(try await requests { _, _ in nil } == ["PROPFIND", "LOCK", "PROPFIND", "DELETE"])
    }

    /// Apache loses locks when others are taken at the same moment, and says 412 or 400 then.
    @Test(arguments: ["412 Precondition Failed", "400 Bad Request"])
    func aFolderWhoseLockGotLostIsLockedAgain(answer: String) async throws {
        let found = try await requests { request, count in request.method == "DELETE" && count == 1 ? reply(answer) : nil }
        #expect(found.filter { $0 == "DELETE" || $0 == "LOCK" } == ["LOCK", "DELETE", "LOCK", "DELETE"])
    }

    /// Apache has locks again that have ended, and a folder that was removed could not be made anew for half a minute.
    @Test func aLockThatIsThereAgainIsEndedAgain() async throws {
        let isThere = Mutex(true)
        let found = try await requests(makesAnew: true) { request, _ in
            if request.method == "UNLOCK", request.head.contains("<urn:token1>") { isThere.withLock { $0 = false } }
            return request.method == "MKCOL" && isThere.withLock { $0 } ? reply("423 Locked") : nil
        }
        #expect(found.suffix(4) == ["MKCOL", "UNLOCK", "MKCOL", "PROPFIND"])
    }

    @Test func aServerWhoseTagsMatchNothingIsNotAskedForever() async throws {
        let found = try await requests(traits, answer: "412 Precondition Failed", count: 40)
        #expect(found.count { $0 == "LOCK" } == 40 && found.count { $0 == "DELETE" } == 56)
    }
}
