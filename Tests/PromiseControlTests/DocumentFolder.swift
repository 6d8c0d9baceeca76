import Foundation
import Logging
import PromiseControl
import PromiseCoordination
import PromiseKit

/// A text, as an application has it in memory.
struct PlainText: DocumentContents {
    var text = ""

    init() {}
    init(bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
    func bytes() -> [UInt8] { Array(text.utf8) }
}

/// A folder that takes the place of a mount, with the document `now` in it, and a daemon that
/// grants every claim on it.
struct DocumentFolder {
    let path: String
    private let client: PromiseClient
    private let service: FakeService

    static func with(_ text: String, _ body: (DocumentFolder) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.path + "/now"))
        let socketPath = folder.path + "/runtime/d.sock"
        try ControlServer.prepare(socketPath: socketPath)
        let service = FakeService()
        service.add([Array("now".utf8)], node: 7)
        // When it is a package.
        service.add([Array("now".utf8), Array("inner".utf8)], node: 8)
        service.add([Array("now".utf8), Array("inner".utf8), Array("one".utf8)], node: 9)
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = ControlServer(
            service: service, socketPath: socketPath, logger: logger,
            keepAliveInterval: .milliseconds(50))
        let (ready, continuation) = AsyncStream.makeStream(of: Void.self)
        let serving = Task { try await server.run { continuation.yield() } }
        _ = await ready.first { _ in true }
        let client = PromiseClient(socketPath: socketPath, domain: "fake")
        let result: Result<Void, any Error>
        do {
            let made = DocumentFolder(path: folder.path, client: client, service: service)
            result = .success(try await body(made))
        } catch {
            result = .failure(error)
        }
        await server.stop()
        try await serving.value
        try result.get()
    }

    var file: String { path + "/now" }

    func document(autosaveDelay: Duration = .seconds(3600)) throws -> Document<PlainText> {
        try document(PlainText(), autosaveDelay: autosaveDelay)
    }

    func document<Contents: DocumentContents>(
        _ contents: Contents, autosaveDelay: Duration = .seconds(3600)
    ) throws -> Document<Contents> {
        let line = "1 1 0:1 / \(path) rw - fuse.promisefs fake rw"
        let location = try Location.of(
            Array(file.utf8), in: MountTable(parsing: Array(line.utf8)))
        return Document(
            location, client: client, contents: contents, autosaveDelay: autosaveDelay)
    }

    /// What presenters hear when a program that asks nobody has written.
    func tellOfChange() { service.tellPresenter(.didChange) }

    /// As `now` still, wherever it was.
    func tellOfMove() { service.tellPresenter(.didMove) }

    func text() throws -> String { try String(contentsOfFile: file, encoding: .utf8) }
}
