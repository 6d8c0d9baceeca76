import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import PromiseAccess
import PromiseWire
import Synchronization

extension ControlServer {
    /// For tests: answers requests that come by no socket, as if this user had sent them and gone. They pass the same routes
    /// and decoders; a stream tells what there is to tell at once, and ends.
    package struct Answerer: Sendable {
        private let responder: any HTTPResponder<ControlRequestContext>
        private let logger: Logger
        private let application: Principal?

        package init(_ server: ControlServer) {
            responder = server.routes.responder()
            logger = server.logger
            application = server.application
        }

        /// The status, and the whole body.
        package func answer(_ method: String, _ target: String, body: [UInt8]) async throws -> (status: Int, body: [UInt8]) {
            guard let method = HTTPRequest.Method(method) else { return (501, []) }
            let head = HTTPRequest(method: method, scheme: "http", authority: "promisefs", path: target)
            let peer = PeerCredentials(process: getpid(), user: geteuid(), group: getegid())
            let connection = ControlConnection(peer: peer, channel: nil, application: application)
            connection.closed()
            let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body)))
            let response = try await PromiseControl.answer(request, connection, responder, logger: logger)
            let collected = Collected()
            do {
                try await response.body.write(Collector(collected: collected))
            } catch is Silence {}
            return (response.status.code, collected.bytes.withLock { $0 })
        }
    }

    /// A stream has told what there is, and nobody is there to be told more.
    private struct Silence: Error {}

    private final class Collected: Sendable { let bytes = Mutex<[UInt8]>([]) }

    private struct Collector: ResponseBodyWriter {
        let collected: Collected

        mutating func write(_ buffer: ByteBuffer) async throws {
            if buffer.readableBytesView.elementsEqual(ServerEvent.keepAlive.utf8) { throw Silence() }
            collected.bytes.withLock { $0 += buffer.readableBytesView }
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}
