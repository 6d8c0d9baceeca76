import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Testing

/// What servers other than Apache do, as it was seen with nginx, lighttpd and sabre/dav.
struct OtherServerTests {
    private static let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])
    private static let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private static let modified = "Sun, 22 Nov 2026 09:39:31 GMT"

    private func fetch(
        _ version: String, listed: String, _ headers: [String]
    ) async throws -> (code: ProviderError.Code?, text: String) {
        let server = ScriptedServer { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND": request.path == "/" ? rows(("/", collection)) : listing("/file", tag: listed)
            default: reply("200 OK", headers, "text")
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: [])
        let sink = ConformanceSink()
        do throws(ProviderError) {
            try await provider.fetchContents(of: Self.file, version: ContentVersion(version), range: nil, into: sink)
        } catch {
            return (error.code, "")
        }
        return (nil, String(decoding: sink.bytes, as: UTF8.self))
    }

    /// lighttpd, of files whose type it does not know: what is there is looked at before and after.
    @Test func aReplyThatDoesNotSayWhatItSendsIsLookedAt() async throws {
        #expect(try await fetch("7", listed: "\"7\"", []).text == "text")
        #expect(try await fetch("7", listed: "\"8\"", []).code == .stale)
    }

    /// nginx: no tags in listings, so the time is the version, and content comes with a tag all the same.
    @Test func aTagThatListingsDoNotHaveIsNoOtherVersion() async throws {
        let headers = ["ETag: \"6b02b853-4\"", "Last-Modified: \(Self.modified)"]
        #expect(try await fetch("4-\(Self.modified)", listed: "\"7\"", headers).text == "text")
        #expect(try await fetch("5-\(Self.modified)", listed: "\"7\"", headers).code == .stale)
    }

    /// nginx: uploaded, it would be in no listing, and be taken for removed by somebody.
    @Test func aNameThatTheServerWouldNotListStaysHere() async throws {
        let server = ScriptedServer { request in
            request.method == "OPTIONS" ? reply("200 OK", ["DAV: 1", "Server: s"]) : rows(("/", collection))
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["hidesNames"])
        let item = NewItem(
            name: FileName(".profile")!, kind: .file,
            metadata: Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: .zero))
        let source = try ConformanceSource(Array("text".utf8))
        do throws(ProviderError) {
            _ = try await provider.create(item, in: Self.root, contents: source)
            Issue.record("it was made")
        } catch {
            #expect(error.code == .refused && error.message.contains("dot"))
        }
        #expect(!server.requests.contains { $0.hasPrefix("PUT") })
    }

    /// sabre/dav, when its database of properties is busy.
    @Test func aMoveThatFailedAfterItWasDoneIsDone() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("MOVE", _): reply("500 Internal Server Error")
            case ("PROPFIND", "/moved"): listing("/moved", tag: "\"7\"")
            case ("PROPFIND", "/file"): reply("404 Not Found")
            default: rows(("/", collection))
            }
        }
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["honoursOverwrite"])
        let changes = ItemChanges(place: (Self.root, FileName("moved")!))
        let moved = try await provider.modify(Self.file, changes: changes, contents: nil, baseVersion: nil)
        #expect(moved.name == FileName("moved"))
    }
}
