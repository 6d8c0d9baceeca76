import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// A server without case said that the second of two names was "changed meanwhile", and nobody could see what was in its way.
struct TwinNameTests {
    /// Takes names that differ in case, or in Unicode's forms of letters, for one. `answersAsAsked`: a look at the second name
    /// tells of it, and not of the first one.
    private final class Server: Sendable {
        private let files = Mutex<[String: String]>(["/A": "old", "/\u{E9}": "old"])
        private let moves = Atomic<Int>(0)
        private let puts = Atomic<Int>(0)
        private let breaksListings = Atomic<Bool>(false)
        let answersAsAsked: Bool
        var moveCount: Int { moves.load(ordering: .relaxed) }
        var putCount: Int { puts.load(ordering: .relaxed) }

        init(answersAsAsked: Bool) { self.answersAsAsked = answersAsAsked }

        func breakListings() { breaksListings.store(true, ordering: .relaxed) }

        func answer(_ request: ScriptedServer.Request) -> String? {
            let path = request.path.removingEscapes
            if request.method == "MOVE" { moves.add(1, ordering: .relaxed) }
            if request.method == "PUT" { puts.add(1, ordering: .relaxed) }
            if request.method == "PROPFIND", path == "/", breaksListings.load(ordering: .relaxed) {
                return reply("500 Internal Server Error")
            }
            return files.withLock { files in
                let known = files.keys.first { $0.lowercased() == path.lowercased() }
                switch request.method {
                case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
                case "PROPFIND" where path == "/":
                    let rows = files.keys.sorted().map { "<response><href>\($0)</href>\(Self.row)</response>" }.joined()
                    return reply(
                        "207 Multi-Status", [],
                        "<multistatus xmlns=\"DAV:\"><response><href>/</href>\(collection)</response>\(rows)</multistatus>")
                case "PROPFIND":
                    guard let known else { return reply("404 Not Found") }
                    return listing(answersAsAsked ? request.path : known, size: 3)
                case "PUT", "MKCOL", "MOVE":
                    if request.method == "MKCOL", known != nil { return reply("405 Method Not Allowed") }
                    if request.method == "MOVE" || known != nil { return reply("412 Precondition Failed") }
                    files[path] = request.body
                    return reply("201 Created")
                case "GET", "HEAD": return known == nil ? reply("404 Not Found") : reply("200 OK", ["ETag: \"1\""], "old")
                default: return reply("204 No Content")
                }
            }
        }

        private static let row = """
            <propstat><prop><resourcetype/><getetag>"1"</getetag><getcontentlength>3</getcontentlength></prop>\
            <status>HTTP/1.1 200 OK</status></propstat>
            """
    }

    private func withServer(answersAsAsked: Bool, _ body: (WebDAVProvider) async throws -> Void) async throws {
        let fake = Server(answersAsAsked: answersAsAsked)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let traits: Set = ["putIsWhole", "putsOnlyNew", "moveKeepsTag", "honoursOverwrite", "foldsNames"]
        try await body(try await provider(server, remembering: traits))
    }

    private func create(
        _ provider: WebDAVProvider, _ name: String, _ kind: NodeKind = .file, byteCount: Int = 4
    ) async -> ProviderError? {
        let metadata = Metadata(mode: 0o644, owner: 1, group: 2, modificationTime: Timestamp(nanoseconds: 5))
        let item = NewItem(name: FileName(name)!, kind: kind, metadata: metadata)
        let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
        let source = kind == .file ? try? ConformanceSource([UInt8](repeating: 7, count: byteCount)) : nil
        do throws(ProviderError) {
            _ = try await provider.create(item, in: root, contents: source)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [true, false]) func aNameThatIsTakenByAnotherIsSaidWithThatOne(answersAsAsked: Bool) async throws {
        try await withServer(answersAsAsked: answersAsAsked) { provider in
            for (name, twin, kind) in [("a", "A", NodeKind.file), ("a", "A", .folder), ("e\u{301}", "\u{E9}", .file)] {
                let first = await create(provider, name, kind)
                if kind == .file { #expect(first?.code == .conflict, "others may have made it") }
                let error = await create(provider, name, kind)
                #expect(error?.code == .refused, "\(name): \(String(describing: error))")
                let text = "'/\(name)' stays on this machine: the server takes it and '\(twin)', which is there, for one name; "
                    + "rename one of the two"
                #expect(error?.message.utf8.elementsEqual(text.utf8) == true, "\(String(describing: error))")
            }
        }
    }

    @Test func aMoveToSuchANameIsSaidAlike() async throws {
        try await withServer(answersAsAsked: true) { provider in
            let reference = ItemReference(identifier: ItemIdentifier("/\u{E9}"), path: [FileName("\u{E9}")!])
            let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
            var changes = ItemChanges()
            changes.place = (root, FileName("a")!)
            var error: ProviderError?
            for _ in 1...2 {
                do throws(ProviderError) {
                    _ = try await provider.modify(reference, changes: changes, contents: nil, baseVersion: ContentVersion("1"))
                } catch let problem {
                    error = problem
                }
            }
            let isNamed = error?.message.contains("'A', which is there") == true
            #expect(error?.code == .refused && isNamed, "\(String(describing: error))")
        }
    }

    /// Asked for by the name that it had before others changed the case of that, it was told under
    /// that name.
    @Test(arguments: [true, false])
    func whatHasAnotherNameNowIsToldByThat(answersAsAsked: Bool) async throws {
        try await withServer(answersAsAsked: answersAsAsked) { provider in
            let composed = "\u{E9}"
            let names = [("a", "A"), ("A", "A"), ("e\u{301}", composed), (composed, composed)]
            for (old, now) in names {
                let mine = ItemIdentifier("mine")
                let reference = ItemReference(identifier: mine, path: [FileName(old)!])
                let item = try await provider.item(for: reference)
                #expect(item.name == FileName(now)! && item.identifier == mine, "\(old)")
            }
        }
    }

    /// A move that was to go over nothing went over a file whose name differs in case only (rclone,
    /// on such a disk).
    @Test func nothingIsPutOverATwinWhereTheServerAllowsIt() async throws {
        let fake = Server(answersAsAsked: true)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let traits: Set = ["putIsWhole", "putsOnlyNew", "honoursOverwrite", "overwritesTwins"]
        let provider = try await provider(server, remembering: traits)
        let error = await create(provider, "a")
        #expect(error?.code == .refused && error?.message.contains("'A', which is there") == true)
        #expect(await create(provider, "b")?.code != .refused)
    }

    /// A folder that could not be listed counted as one without a twin, and that was overwritten.
    @Test func nothingIsPutWhereItCannotBeSeenWhetherThereIsATwin() async throws {
        let fake = Server(answersAsAsked: true)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let traits: Set = ["putIsWhole", "putsOnlyNew", "honoursOverwrite", "overwritesTwins"]
        let provider = try await provider(server, remembering: traits)
        fake.breakListings()
        let error = await create(provider, "a")
        #expect(error?.code == .retry, "\(String(describing: error))")
        #expect(fake.putCount == 0 && fake.moveCount == 0)
    }

    /// rclone removed what was moved to another case of its own name, and so does Apache where the
    /// move may go over something.
    @Test(arguments: [true, false])
    func whatHasTheNameAlreadyIsNotMovedToIt(overwrites: Bool) async throws {
        let fake = Server(answersAsAsked: true)
        let server = ScriptedServer { fake.answer($0) }
        defer { server.stop() }
        let traits: Set = overwrites ? ["overwritesTwins"] : ["honoursOverwrite"]
        let provider = try await provider(server, remembering: traits)
        let reference = ItemReference(identifier: ItemIdentifier("/A"), path: [FileName("A")!])
        let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
        let changes = ItemChanges(place: (root, FileName("a")!))
        for _ in 1...2 {
            await #expect {
                _ = try await provider.modify(
                    reference, changes: changes, contents: nil, baseVersion: ContentVersion("1"))
            } throws: {
                ($0 as? ProviderError)?.code == .conflict
            }
        }
        #expect(fake.moveCount == 0)
    }

    /// It is taken, and a listing will show it.
    @Test func aNameThatIsThereItselfIsAConflict() async throws {
        try await withServer(answersAsAsked: true) { provider in
            for _ in 1...3 { #expect(await create(provider, "A")?.code == .conflict) }
        }
    }
}

extension String {
    fileprivate var removingEscapes: String { String(decoding: PercentEncoding.decoded(self) ?? Array(utf8), as: UTF8.self) }
}
