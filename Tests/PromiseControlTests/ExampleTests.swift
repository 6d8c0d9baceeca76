import Foundation
import Logging
import PromiseControl
import PromiseKit
import PromiseWire
import Synchronization
import Testing

/// The Swift examples of the documents and of PromiseKit's own comments, run as they stand there: `StyleTests` compares them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ExampleTests {
    private func withClient(_ body: (PromiseClient) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.path + "/runtime/d.sock"
        try ControlServer.prepare(socketPath: path)
        let service = FakeService(values: folder.path + "/values")
        service.add([Array("report.txt".utf8)], node: 3)
        service.add([Array("report.pdf".utf8)], node: 5)
        service.add([Array("now".utf8)], node: 7)
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = ControlServer(service: service, socketPath: path, logger: logger, keepAliveInterval: .milliseconds(50))
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        _ = await ready.first { _ in true }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(PromiseClient(socketPath: path, domain: "fake")))
        } catch {
            result = .failure(error)
        }
        await server.stop()
        try await serving.value
        try result.get()
    }

    private final class Application: Sendable {
        private let state = Mutex<[String]>([])
        var calls: [String] { state.withLock { $0 } }
        func note(_ call: String) { state.withLock { $0.append(call) } }
    }

    private func append(_ line: String, to path: String) throws { #expect(line == "a line" && path == "/now") }

    @Test func values() async throws {
        try await withClient { client in
            let store = KeyValueStore(client, application: "com.example.editor")
            try await store.set(.integer(120), for: "position")
            let position = try await store.value(for: "position") ?? .integer(0)
            #expect(position == .integer(120))
            #expect(try await store.values() == ["position": .integer(120)])
            #expect(try await store.removeValue(for: "position"))
            #expect(try await !store.removeValue(for: "position"))
            await #expect(throws: PromiseError.self) { try await store.set(.number(.nan), for: "number") }
            var deep = KeptValue.bool(true)
            for _ in 0..<100 { deep = .list([deep]) }
            let value = deep
            await #expect(throws: PromiseError.self) { try await store.set(value, for: "deep") }
        }
    }

    /// The folder is made in a mount: `ContainerTests`.
    @Test func containers() async throws {
        try await withClient { client in
            await #expect(throws: PromiseError.self) {
                let container = try await client.addContainer(for: "com.example.editor", name: "Editor")
                let documents = container.documentsPath
                #expect(documents == "/Editor/Documents")
            }
        }
    }

    /// The link is made in a mount: `ReferenceTests`.
    @Test func references() async throws {
        try await withClient { client in
            await #expect(throws: PromiseError.self) {
                let reference = try await client.addReference(to: Array("projects/plan.md".utf8), at: Array("desk".utf8))
                #expect(reference.state == "found")
            }
        }
    }

    /// The item is in a mount: `BookmarkTests`.
    @Test func bookmarks() async throws {
        try await withClient { client in
            await #expect(throws: PromiseError.self) {
                let bookmark = try await client.bookmark(of: Array("report.txt".utf8), for: "com.example.editor")
                let document = ScopedURL(client, bookmark: bookmark, application: "com.example.editor")
                let path = try await document.accessing { access in access.path }
                #expect(path == Array("report.txt".utf8))
            }
        }
    }

    @Test func coordination() async throws {
        try await withClient { client in
            let coordinator = FileCoordinator(client)
            try await coordinator.coordinate([.writing(Array("report.txt".utf8))]) { access in
                try append("a line", to: access.items[0].path)
            }
        }
    }

    @Test func coordinationWithAResult() async throws {
        try await withClient { client in
            let path = Array("report.txt".utf8)
            let coordinator = FileCoordinator(client, purpose: "notes")
            let size = try await coordinator.coordinate([.writing(path, .forMerging)], timeout: .seconds(30)) { access in
                print("nobody else writes \(access.items[0].path)")
                return try await client.information(path: path).size
            }
            #expect(size == 3)
        }
    }

    @Test func presenters() async throws {
        let application = Application()
        @Sendable func save() throws { application.note("save") }
        @Sendable func reload(because what: String) { application.note(what) }
        try await withClient { client in
            let path = Array("report.txt".utf8)
            let listening = Task {
                for try await event in try await FilePresenter(client).events(of: path) {
                    switch event {
                    case .asked(let question):
                        if question.kind == "saveChanges" { try save() }
                        try await question.answer()
                    case .told(let what, _): reload(because: what)
                    }
                }
            }
            for _ in 0..<6_000 where application.calls.count < 2 { try await Task.sleep(for: .milliseconds(10)) }
            listening.cancel()
            _ = await listening.result
        }
        #expect(application.calls == ["save", "didChange"])
    }

    private struct Note: DocumentContents {
        var lines: [String] = []
        init() {}
        init(bytes: [UInt8]) { lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { String($0) } }
        func bytes() -> [UInt8] { Array(lines.map { $0 + "\n" }.joined().utf8) }
    }

    /// In a folder that takes the place of a mount.
    @Test func documents() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        #expect(FileManager.default.createFile(atPath: folder.path + "/now", contents: Data("write a note\n".utf8)))
        let table = MountTable(parsing: "1 1 0:1 / \(folder.path) rw - fuse.promisefs fake rw".utf8)
        let location = try Location.of(Array((folder.path + "/now").utf8), in: table)
        try await withClient { client in
            let note = Document(location, client: client, contents: Note())
            try await note.open()
            try await note.edit { $0.lines.append("buy milk") }
            try await note.close()
        }
        #expect(try String(contentsOfFile: folder.path + "/now", encoding: .utf8) == "write a note\nbuy milk\n")
    }

    @Test func versions() async throws {
        @Sendable func isOlder(_ version: FileVersion) -> Bool { true }
        try await withClient { client in
            let path = Array("report.txt".utf8)
            let versions = FileVersions(client)
            for version in try await versions.unresolved(of: path) where isOlder(version) {
                try await versions.remove(version, of: path)
            }
        }
    }

    @Test func queries() async throws {
        try await withClient { client in
            let query = MetadataQuery("kMDItemFSName LIKE[c] '*.txt' AND kMDItemFSSize > %@", [.integer(1000)])
            for try await update in try await query.updates(of: client) {
                if case .added(let items) = update { items.forEach { print($0.path) } }
            }
        }
    }

    @Test func sortedResults() async throws {
        try await withClient { client in
            let query = MetadataQuery("kMDItemFSName ENDSWITH %@", [.text(".txt")]).sorted(by: "-kMDItemFSSize").limit(10)
            for item in try await query.results(of: client) { print(item.path, item.size) }
        }
    }

    @Test func resultsOfLiveQueries() async throws {
        try await withClient { client in
            let query = MetadataQuery("kMDItemFSSize > 0").attributes("kMDItemContentType").live()
            var results = QueryResults(valuesOf: ["kMDItemContentType"])
            for try await update in try await query.updates(of: client) {
                results.apply(update)
                for (type, count) in results.values(of: "kMDItemContentType") { print(type, count) }
            }
            #expect(results.count == 0, "the fake ends with a reset")
        }
    }

    @Test func promisedValues() async throws {
        try await withClient { client in
            let values = try await client.promisedValues([.size, .isUploaded], of: [Array("report.pdf".utf8)])
            #expect(values.items.count == 1 && values.failures.isEmpty)
        }
    }
}
