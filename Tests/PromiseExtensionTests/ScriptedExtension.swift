import Glibc
import Logging
import PromiseCore
import PromiseExtension
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization

/// An extension that answers as a test says, in a thread for each connection: for what real ones do when they are wrong.
final class ScriptedExtension: Sendable {
    struct Request: Sendable {
        var method: String
        /// Without `/v1/`.
        var path: String
        /// As it came, with the head's lines in small letters.
        var head: String
    }

    /// Pieces of the reply as they go over the wire; after the last one the connection is closed if `closes` says so. An empty
    /// piece is a pause of 300 ms. Nil: the connection is cut.
    struct Answer: Sendable {
        var pieces: [String]
        var closes = false
    }

    typealias Script = @Sendable (Request) -> Answer?

    private struct Conduct: Sendable { let answer: Script }

    let folder: TemporaryFolder
    private let listener: CInt
    private let conduct: Conduct
    private let seen = Mutex<[Request]>([])

    var requests: [Request] { seen.withLock { $0 } }
    var path: String { folder.string + "/socket" }

    init(_ script: @escaping Script) throws {
        folder = try TemporaryFolder("ext")
        conduct = Conduct(answer: script)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = folder.path("socket")
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let listener = listener
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let length = socklen_t(MemoryLayout<sockaddr_un>.size)
                precondition(bind(listener, address, length) == 0 && listen(listener, 16) == 0, "a socket can be listened at")
            }
        }
        OwnedThread(name: "scripted") { [self] in accept() }.detach()
    }

    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while case let connection = Glibc.accept(listener, nil, nil), connection >= 0 {
            OwnedThread(name: "scripted-client") { [self] in serve(connection) }.detach()
        }
        close(listener)
    }

    private func serve(_ connection: CInt) {
        defer { close(connection) }
        var received = ""
        while let request = next(connection, &received) {
            seen.withLock { $0.append(request) }
            guard let answer = conduct.answer(request) else { return }
            for piece in answer.pieces {
                if piece.isEmpty { usleep(300_000) }
                let bytes = Array(piece.utf8)
                _ = bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            if answer.closes { return }
        }
    }

    private func next(_ connection: CInt, _ received: inout String) -> Request? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let parts = received.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 {
                let lines = parts[0].split(separator: "\r\n")
                let length =
                    lines.first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) } ?? 0
                if parts[1].utf8.count >= length {
                    received = String(decoding: parts[1].utf8.dropFirst(length), as: UTF8.self)
                    let words = lines[0].split(separator: " ")
                    return Request(
                        method: String(words[0]), path: String(words[1].dropFirst("/v1/".count)), head: parts[0].lowercased())
                }
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            received += String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}

typealias Answer = ScriptedExtension.Answer

/// A reply with a body of a length that is said, truly or not.
func reply(_ status: String, _ body: String = "", _ headers: [String] = [], length: Int? = nil, closes: Bool = false) -> Answer {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(length ?? body.utf8.count)"] + headers
    return Answer(pieces: [lines.joined(separator: "\r\n") + "\r\n\r\n" + body], closes: closes)
}

/// What an extension says of one item, `changes` taking the place of some of it.
func described(
    _ identifier: String, in parent: String = "1", name: String = "file", _ changes: [String: String] = [:]
) -> String {
    var members = [
        "identifier": "\"\(identifier)\"", "parent": "\"\(parent)\"", "name": "\"\(name)\"", "kind": "\"file\"", "size": "4",
        "version": "\"1\"",
    ]
    members.merge(changes) { $1 }
    return "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }.joined(separator: ", ") + "}"
}

let folderMembers = ["kind": "\"folder\""]
let rootDescribed = "{\"identifier\": \"1\", \"name\": \"root\", \"kind\": \"folder\"}"

/// Answers what every mount asks first; the rest is the test's.
func withExtension(
    capabilities: String = "", idle: Duration = .seconds(20), _ script: @escaping ScriptedExtension.Script,
    _ body: (ExtensionProvider, ScriptedExtension) async throws -> Void
) async throws {
    let server = try ScriptedExtension { request in
        switch request.path {
        case "capabilities": reply("200 OK", "{\"capabilities\": [\(capabilities)]}")
        case "root": reply("200 OK", rootDescribed)
        default: script(request)
        }
    }
    defer { server.stop() }
    var timeouts = ExtensionTimeouts()
    timeouts.idle = idle
    let provider = try ExtensionProvider(
        location: try ExtensionLocation(parsing: "extension:" + server.path), credentials: CredentialSource(), stateFolder: nil,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, timeouts: timeouts)
    try await provider.connect()
    try await body(provider, server)
}

func error(_ body: () async throws -> Void) async -> ProviderError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? ProviderError
    }
}
