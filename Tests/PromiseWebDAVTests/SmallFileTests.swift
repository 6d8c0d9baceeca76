import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Testing

/// A small new file is put where it belongs at once; whose content is there then is not taken on trust.
struct SmallFileTests {
    private let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private let traits: Set = ["putIsWhole", "putsOnlyNew", "moveKeepsTag", "keepsProperties", "honoursOverwrite"]

    private func create(
        _ put: String = reply("201 Created"), there content: String = "text", name: String = "file", byteCount: Int = 4,
        traits: Set<String>? = nil
    ) async throws -> (item: Result<Item, ProviderError>, methods: [String]) {
        let script: ScriptedServer.Script = { request in
            switch request.method {
            case "OPTIONS": reply("200 OK", ["DAV: 1", "Server: s"])
            case "PROPFIND":
                request.path == "/" ? rows(("/", keepingCollection)) : listing("/\(name)", tag: "\"7\"", size: content.utf8.count)
            case "PUT": put
            case "HEAD": reply("200 OK", ["ETag: \"7\""], length: content.utf8.count)
            case "GET": reply("200 OK", ["ETag: \"7\""], content)
            default: rows()
            }
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let provider = try await provider(server, remembering: traits ?? self.traits)
        let before = server.requests.count
        let item = NewItem(
            name: FileName(name)!, kind: .file,
            metadata: Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(nanoseconds: 5)))
        let source = try ConformanceSource([UInt8](repeating: UInt8(ascii: "x"), count: byteCount - 4) + Array("text".utf8))
        var outcome: Result<Item, ProviderError>
        do throws(ProviderError) {
            outcome = .success(try await provider.create(item, in: root, contents: source))
        } catch {
            outcome = .failure(error)
        }
        let methods = server.requests.dropFirst(before).compactMap { $0.split(separator: " ").first.map(String.init) }
        return (outcome, methods)
    }

    @Test func aSmallNewFileCostsThreeRequests() async throws {
        let (item, methods) = try await create()
        #expect(try item.get().version == ContentVersion("7"))
        #expect(try item.get().metadata.mode == 0o640)
        #expect(methods == ["PUT", "GET", "PROPPATCH"])
    }

    /// Its own content was read again.
    @Test func aSmallNewFileCostsTwoRequestsWhereTheAnswerTellsItsTag() async throws {
        let telling = traits.union(["putTellsTag"])
        let (item, methods) = try await create(reply("201 Created", ["ETag: \"7\""]), traits: telling)
        #expect(try item.get().version == ContentVersion("7") && item.get().size == 4)
        #expect(try item.get().metadata.mode == 0o640)
        #expect(methods == ["PUT", "PROPPATCH"])
        #expect(try await create(traits: telling).methods == ["PUT", "GET", "PROPPATCH"], "this time it does not")
    }

    /// rclone's server keeps no properties; its time is what it says.
    @Test func aServerWithoutPropertiesIsAskedForTheTimeAndNotForTheContent() async throws {
        let telling = traits.subtracting(["keepsProperties"]).union(["putTellsTag"])
        let answer = reply("201 Created", ["ETag: \"7\""])
        let (item, methods) = try await create(answer, traits: telling)
        #expect(try item.get().version == ContentVersion("7") && methods == ["PUT", "HEAD"])
        let (other, _) = try await create(reply("201 Created", ["ETag: \"8\""]), traits: telling)
        #expect(throws: ProviderError.self) { try other.get() }
    }

    /// Of the same size, and of another.
    @Test(arguments: ["xtet", "theirs"]) func anotherProgramsContentIsNotTakenForOurs(content: String) async throws {
        let (item, methods) = try await create(there: content)
        #expect(throws: ProviderError.self) { try item.get() }
        if case .failure(let error) = item { #expect(error.code == .conflict) }
        #expect(!methods.contains("PROPPATCH"))
    }

    @Test func aNameThatIsTakenIsAConflict() async throws {
        let (item, methods) = try await create(reply("412 Precondition Failed"))
        if case .failure(let error) = item { #expect(error.code == .conflict) } else { Issue.record("it was made") }
        #expect(methods == ["PUT"])
    }

    /// The name of the temporary place said nothing to anybody, and was another one at each attempt.
    @Test func aServerThatIsFullIsSaidOfTheFileAndNotOfItsTemporaryPlace() async throws {
        for (answer, byteCount) in [("507 Insufficient Storage", 20_000), ("507 Insufficient Storage", 4)] {
            let (item, methods) = try await create(reply(answer), byteCount: byteCount)
            #expect(methods.contains("PUT"))
            guard case .failure(let error) = item else {
                Issue.record("it was made")
                return
            }
            #expect(error.code == .outOfSpace && error.message.contains("'/file' cannot be uploaded"), "\(error.message)")
            #expect(!error.message.contains(".promisefs"))
        }
    }

    /// It takes its time on the way, or the server cannot be relied on: another program's file could come in between.
    @Test func whatCannotBePutAtOnceIsPutAside() async throws {
        for methods in [
            try await create(byteCount: 20_000).methods,
            try await create(traits: traits.subtracting(["putsOnlyNew"])).methods,
            try await create(traits: traits.subtracting(["putIsWhole"])).methods,
            try await create(name: String(repeating: "n", count: 201)).methods,
        ] { #expect(methods.contains("MOVE") || methods.contains("DELETE"), "\(methods)") }
    }
}
