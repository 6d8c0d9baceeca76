package import AsyncHTTPClient
package import Foundation
import Glibc
package import NIOCore
package import NIOHTTP1
import PromiseCore
package import PromiseProvider
package import PromiseSystem

/// A whole reply.
package struct HTTPReply: Sendable {
    /// No answer of a server is let grow beyond this, in bytes.
    package static let byteCountMax = 1 << 30
    /// What is held in memory as a whole, and is no content of a size that is known.
    package static let wholeByteCountMax = 64 << 20
    /// The same of what only says how something went, of which there may be many at once.
    package static let shortByteCountMax = 4 << 20

    package var status: Int
    package var headers: HTTPHeaders
    package var body: Data

    package init(status: Int, headers: HTTPHeaders, body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    package var isSuccess: Bool { (200..<300).contains(status) }
    package func header(_ name: String) -> String? { headers.first(name: name) }
}

/// How slowly a body may come. Silence is ended by the client; what drips would hold its caller for ever.
package enum Pace {
    /// Ten minutes are free, then a second for each 1000 bytes. Of a reply that only says how
    /// something went, or that something is there, it is a minute: work waits for it.
    package static func isKept(
        _ byteCount: Int, after time: Duration, isShort: Bool = false
    ) -> Bool {
        time < .seconds((isShort ? 60 : 600) + byteCount / 1000)
    }
}

/// Kept-alive connections to one server, all on one event loop. Sends one request at a time as it is told, and gives failures of
/// the transport the provider's meaning; what a status means is the caller's to know.
package final class HTTPTransport: Sendable {
    package struct Timeouts: Sendable {
        package var connect = Duration.seconds(10)
        /// Without a byte in either direction.
        package var idle = Duration.seconds(25)
        /// The same for requests over which a server may work long before it says anything: storing what was sent, moving a
        /// tree, listing a large folder.
        package var work = Duration.seconds(600)
        /// Until a short request is answered; and without a byte in either direction where content is stored.
        package var reply = Duration.seconds(60)

        package init() {}
    }

    /// As messages call it: scheme, host and port.
    package let server: String
    /// Where tasks that send requests run best.
    package let executor: LoopExecutor
    package let faultLine = FaultLine()
    package let lineLimit = LineLimit()
    private let http: HTTPClient
    /// For requests that may take long.
    private let patientHTTP: HTTPClient
    /// For requests that carry content.
    private let storingHTTP: HTTPClient
    /// A large body comes in few pieces, each of which costs a way through the pipeline and to a thread. The first one holds the
    /// reply's head and what the kernel reads of a file first, which is 16 KiB; small bodies take no more memory.
    private static let receiveBuffers = AdaptiveRecvByteBufferAllocator(minimum: 1 << 10, initial: 32 << 10, maximum: 512 << 10)
    private let timeouts: Timeouts
    private let trust: ServerTrust
    private let clock: any TimeSource

    /// Throws a sentence when the certificates to trust cannot be read.
    package init(
        server: String, trust: ServerTrust, timeouts: Timeouts = Timeouts(), connections: Int = 32,
        clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        self.server = server
        self.timeouts = timeouts
        self.trust = trust
        self.clock = clock
        var configuration = HTTPClient.Configuration()
        try trust.apply(to: &configuration)
        configuration.timeout.connect = .nanoseconds(timeouts.connect.nanoseconds)
        configuration.timeout.read = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.timeout.write = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        // Nobody looks at traces here, and each costs as much as a part of the request.
        configuration.tracing.tracer = nil
        configuration.http1_1ConnectionDebugInitializer = { channel in
            trust.examine(channel).flatMap { PromptAcknowledgement.add(to: channel) }
                .flatMap { channel.setOption(.recvAllocator, value: HTTPTransport.receiveBuffers) }
                .flatMap { DeadConnection.watch(channel) }
        }
        // A server that is not there is offline, at once; the engine tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        let loop = HTTPClient.defaultEventLoopGroup.next()
        executor = LoopExecutor(loop: loop)
        http = HTTPClient(eventLoopGroup: loop, configuration: configuration)
        configuration.timeout.read = .nanoseconds(timeouts.work.nanoseconds)
        patientHTTP = HTTPClient(eventLoopGroup: loop, configuration: configuration)
        configuration.timeout.read = .nanoseconds(timeouts.reply.nanoseconds)
        configuration.timeout.write = .nanoseconds(timeouts.reply.nanoseconds)
        storingHTTP = HTTPClient(eventLoopGroup: loop, configuration: configuration)
    }

    deinit {
        // Connections are closed in the background; nobody waits for it.
        for client in [http, patientHTTP, storingHTTP] { client.shutdown { _ in } }
    }

    /// Returns with the head of the reply; the body is read by the caller. With `isRepeatable` a request that met a kept
    /// connection as the server closed it is sent once more. `takesLong`: the server may work on it before it answers.
    /// `stores`: not so long, but longer than over a look: it keeps what was sent.
    package func send(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders, body: RequestBody?, timeout: Duration? = nil,
        isRepeatable: Bool, takesLong: Bool, stores: Bool = false
    ) async throws(ProviderError) -> HTTPClientResponse {
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        var request = HTTPClientRequest(url: url)
        request.method = method
        request.headers = headers
        request.headers.replaceOrAdd(name: "User-Agent", value: "promisefs")
        let limit = TimeAmount.nanoseconds((timeout ?? timeouts.reply).nanoseconds)
        let http = takesLong ? patientHTTP : stores ? storingHTTP : http
        do {
            return try await carry(request, body, by: http, limit)
        } catch let error as HTTPClientError where error == .remoteConnectionClosed && isRepeatable {
            do {
                return try await carry(request, body, by: http, limit)
            } catch {
                throw await meaning(of: error, method)
            }
        } catch {
            // Reading the file failed, not sending it.
            if case .file(let file) = body, let problem = file.problem.error { throw problem }
            throw await meaning(of: error, method)
        }
    }

    private func carry(
        _ request: HTTPClientRequest, _ body: RequestBody?, by http: HTTPClient, _ limit: TimeAmount
    ) async throws -> HTTPClientResponse {
        let response = try await faultLine.carry {
            try await lineLimit.carry(request, body) { try await http.execute($0, timeout: limit) }
        }
        if case .file(let file) = body, (200..<300).contains(response.status.code), !file.isTaken {
            throw ProviderError(.retry, "\(server) says that it has a file before it was sent")
        }
        return response
    }

    /// Why no reply came. A certificate that was refused is looked at, for the sentence.
    private func meaning(of error: any Error, _ method: HTTPMethod) async -> ProviderError {
        var error = error
        if ServerTrust.isDistrust(error) {
            let configuration = ServerTrust.examination(at: clock.now().seconds)
            let client = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
            do {
                _ = try await client.execute(HTTPClientRequest(url: server), timeout: .seconds(10))
            } catch let report as DistrustedServer {
                error = report
            } catch {
                // Then there is only what was known before.
            }
            client.shutdown { _ in }
        }
        guard let report = error as? DistrustedServer else { return ProviderError(transport: error, method, server: server) }
        return ProviderError(.authenticate, "\(server) cannot be trusted: \(report.sentence(trust))")
    }

    /// Reads what is left of a reply.
    package func whole(
        _ response: HTTPClientResponse, _ method: HTTPMethod, isShort: Bool? = nil
    ) async throws(ProviderError) -> HTTPReply {
        var data = Data()
        let isShort = isShort ?? ![.GET, .PROPFIND, .REPORT].contains(method)
        let countMax = isShort ? HTTPReply.shortByteCountMax : HTTPReply.wholeByteCountMax
        try await read(response, method, isShort: isShort) { (part) throws(ProviderError) in
            guard data.count + part.readableBytes <= countMax else {
                throw ProviderError(
                    .permanent, "the server's answer to \(method) is longer than \(countMax >> 20) MiB")
            }
            data.append(contentsOf: part.readableBytesView)
            return true
        }
        return HTTPReply(status: Int(response.status.code), headers: response.headers, body: data)
    }

    /// Hands on what is left of a reply as it comes, until `take` returns false.
    package func read(
        _ response: HTTPClientResponse, _ method: HTTPMethod, isShort: Bool = false,
        _ take: (ByteBuffer) async throws(ProviderError) -> Bool
    ) async throws(ProviderError) {
        let start = clock.uptime()
        var count = 0
        do {
            for try await part in response.body {
                guard Pace.isKept(count, after: clock.uptime() - start, isShort: isShort) else {
                    throw HTTPClientError.deadlineExceeded
                }
                count += part.readableBytes
                guard count <= HTTPReply.byteCountMax else {
                    throw ProviderError(.permanent, "the server's answer to \(method) is longer than 1 GiB")
                }
                guard try await take(part) else { return }
            }
        } catch {
            throw ProviderError(transport: error, method, server: server)
        }
    }

    /// Sends a request whose body fails on the way; whatever comes of it.
    package func breakOff(_ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders, _ body: HTTPClientRequest.Body) async {
        var request = HTTPClientRequest(url: url)
        request.method = method
        request.headers = headers
        request.headers.replaceOrAdd(name: "User-Agent", value: "promisefs")
        request.body = body
        _ = try? await http.execute(request, timeout: .seconds(10))
    }
}
