import Logging
import PromiseHTTP

/// That a server has asked for Digest, for the daemons to come: whoever can make the daemon start anew could ask for the
/// password itself then, over a connection that others read.
struct DigestMemory: Sendable {
    /// What is kept.
    private struct Server: Codable, Sendable { var origin: String }

    private let file: RememberedFile<Server>
    private let origin: String

    /// `origin`: of the server, with its scheme and port.
    init(folder: [UInt8]?, origin: String, logger: Logger) {
        file = RememberedFile(folder: folder, name: DigestMemory.fileName, logger: logger)
        self.origin = origin
    }

    static let fileName = "webdav-login.json"

    var hasAsked: Bool { file.read()?.origin == origin }
    /// Blocking, for a moment.
    func note() { file.write(Server(origin: origin)) }
}
