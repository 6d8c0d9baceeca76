import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
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

    private let careful = ["PROPFIND", "LOCK", "PROPFIND", "DELETE", "UNLOCK"]

    @Test func aServerThatTakesAnyTagIsAskedUnderALock() async throws {
        #expect(try await requests(["locks"], answer: "204 No Content") == careful)
    }

    /// Apache, in a file's first second; a lock of another program; a file that became a folder.
    @Test(arguments: ["412 Precondition Failed", "423 Locked", "404 Not Found", "301 Moved Permanently", "207 Multi-Status"])
    func whatIsNotDoneForATagIsLookedAt(answer: String) async throws {
        #expect(try await requests(traits, answer: answer) == ["DELETE"] + careful)
    }

    @Test func aServerWhoseTagsMatchNothingIsNotAskedForever() async throws {
        let found = try await requests(traits, answer: "412 Precondition Failed", count: 40)
        #expect(found.count { $0 == "LOCK" } == 40 && found.count { $0 == "DELETE" } == 56)
    }
}
