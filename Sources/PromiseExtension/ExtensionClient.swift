import AsyncHTTPClient
import Glibc
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import PromiseWire

/// What a call waits for. Every byte of an answer, and every `102 Processing` before it, begins the time anew.
package struct ExtensionTimeouts: Sendable {
    /// Without a byte in either direction.
    package var idle = Duration.seconds(20)
    /// Until the head of an answer to a call that carries no content, and again until the end of the answer, whatever comes.
    package var call = Duration.seconds(600)
    package init() {}
}

/// Sends requests to an extension over its socket, and gives failures the provider's meaning. Every message names the extension.
final class ExtensionClient: Sendable {
    /// Of a reply that is no content.
    static let documentByteCountMax = 16 << 20
    private static let problemByteCountMax = 64 << 10
    private static let sentenceLengthMax = 300
    private static let connectionsMax = 24
    private static let transfersMax = 20

    let shortName: String
    private let base: String
    private let http: HTTPClient
    private let timeouts: ExtensionTimeouts
    private let credentials: CredentialSource
    private let process: ExtensionProcess?
    private let clock: any TimeSource
    /// Contents under way, so that the other calls find a connection.
    let transfers = TransferTurns(limit: ExtensionClient.transfersMax)
    let faultLine = FaultLine()

    /// `process`: what is to run before anything is sent; nil: somebody else sees to it.
    init(
        socket: [UInt8], shortName: String, credentials: CredentialSource, process: ExtensionProcess?,
        timeouts: ExtensionTimeouts, clock: any TimeSource
    ) {
        self.shortName = shortName
        self.timeouts = timeouts
        self.credentials = credentials
        self.process = process
        self.clock = clock
        base = "http+unix://\(PercentText.encoded(socket))/v1"
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .seconds(5)
        configuration.timeout.read = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.timeout.write = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        // An extension that is not there is offline, at once; the engine tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = ExtensionClient.connectionsMax
        configuration.http1_1ConnectionDebugInitializer = { PeerCheck.verify($0) }
        http = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    deinit {
        // Connections are closed in the background; nobody waits for it.
        http.shutdown { _ in }
    }

    var title: String { "the extension '\(shortName)'" }

    /// Something that the extension said and that cannot be.
    func lie(_ what: String, _ code: ProviderError.Code = .permanent) -> ProviderError {
        ProviderError(code, "\(title) \(what)")
    }

    // MARK: Requests

    /// Sends a request and reads the document that answers it.
    func exchange<Document: Decodable & Sendable>(
        _ method: HTTPMethod, _ path: String, as type: Document.Type, body: FileBody? = nil, deadline: Duration? = nil
    ) async throws(ProviderError) -> Document {
        let bytes: [UInt8]
        if body == nil {
            bytes = try await answer(method, path, nil, deadline)
        } else {
            bytes = try await transfers.run { () async throws(ProviderError) in try await answer(method, path, body, deadline) }
        }
        guard let document = WireCoding.decode(type, from: bytes) else {
            throw lie("answers \(method) \(shown(path)) with something that is not the document it should be")
        }
        return document
    }

    /// Sends an object of PromiseFS itself and reads the document that answers it.
    func exchange<Document: Decodable & Sendable>(
        _ method: HTTPMethod, _ path: String, bytes: [UInt8], as type: Document.Type
    ) async throws(ProviderError) -> Document {
        let response = try await open(method, path, ["content-type": "application/octet-stream"], bytes: bytes)
        let answer = try await collect(response, upTo: ExtensionClient.documentByteCountMax)
        guard let document = WireCoding.decode(type, from: answer) else {
            throw lie("answers \(method) \(shown(path)) with something that is not the document it should be")
        }
        return document
    }

    private func answer(
        _ method: HTTPMethod, _ path: String, _ body: FileBody?, _ deadline: Duration?
    ) async throws(ProviderError) -> [UInt8] {
        let response = try await open(method, path, body: body, deadline: deadline)
        return try await collect(response, upTo: ExtensionClient.documentByteCountMax)
    }

    /// Asks for bytes that fit in memory.
    func bytes(_ path: String) async throws(ProviderError) -> [UInt8] { try await answer(.GET, path, nil, nil) }

    /// Sends a request that is answered by nothing but success. `bytes`: a picture that it carries.
    func send(_ method: HTTPMethod, _ path: String, bytes: [UInt8]? = nil) async throws(ProviderError) {
        let response = try await open(method, path, bytes: bytes)
        _ = try await collect(response, upTo: ExtensionClient.problemByteCountMax)
    }

    /// Sends a request and returns with the head of a reply that is a success; the body is read by the caller.
    func open(
        _ method: HTTPMethod, _ path: String, _ headers: HTTPHeaders = [:], body: FileBody? = nil, bytes: [UInt8]? = nil,
        deadline: Duration? = nil
    ) async throws(ProviderError) -> HTTPClientResponse {
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        try await process?.ready()
        var request = HTTPClientRequest(url: "\(base)/\(path)")
        request.method = method
        request.headers = headers
        // The host of the address is the socket's path, which is no host name.
        request.headers.replaceOrAdd(name: "host", value: "promisefs")
        if let authorization = try credentials.credentials()?.plainAuthorization {
            request.headers.add(name: "authorization", value: authorization)
        }
        if let body { request.body = try await body.forClient() }
        if let bytes {
            if !request.headers.contains(name: "content-type") {
                request.headers.add(name: "content-type", value: "image/png")
            }
            request.body = .bytes(ByteBuffer(bytes: bytes))
        }
        // A content takes as long as it does; silence ends it.
        let limit = deadline ?? (body == nil ? timeouts.call : .seconds(86_400))
        let response = try await execute(request, TimeAmount.nanoseconds(limit.nanoseconds), body)
        process?.answered()
        let status = Int(response.status.code)
        guard (200..<300).contains(status) else {
            let bytes = (try? await collect(response, upTo: ExtensionClient.problemByteCountMax)) ?? []
            throw refusal(status, response.headers.first(name: "retry-after"), bytes, method, path)
        }
        // What is small was read at once.
        if let body, body.source.size > FileBody.pieceByteCount, !body.isTaken {
            throw lie("answers \(status) to \(method) \(shown(path)) before it has the content", .retry)
        }
        return response
    }

    private func execute(
        _ request: HTTPClientRequest, _ limit: TimeAmount, _ body: FileBody?
    ) async throws(ProviderError) -> HTTPClientResponse {
        do {
            return try await faultLine.carry { try await http.execute(request, timeout: limit) }
        } catch let error as HTTPClientError where error == .remoteConnectionClosed && request.method == .GET {
            // A kept connection that the extension had closed already, or that ended with it.
            try await process?.ready()
            do {
                return try await faultLine.carry { try await http.execute(request, timeout: limit) }
            } catch {
                throw meaning(of: error)
            }
        } catch {
            // Reading the file failed, not sending it.
            if let problem = body?.problem.error { throw problem }
            throw meaning(of: error)
        }
    }

    private func collect(_ response: HTTPClientResponse, upTo limit: Int) async throws(ProviderError) -> [UInt8] {
        var bytes: [UInt8] = []
        // The client's own deadline ends at the head. Silence is ended by its timeout, so looking at the clock when something
        // comes is enough for what drips.
        let end = clock.uptime() + timeouts.call
        do {
            for try await part in response.body {
                guard bytes.count + part.readableBytes <= limit else {
                    throw lie("sends an answer of more than \(limit >> 10) KiB")
                }
                guard clock.uptime() < end else { throw HTTPClientError.deadlineExceeded }
                bytes.append(contentsOf: part.readableBytesView)
            }
        } catch {
            throw meaning(of: error)
        }
        return bytes
    }

    /// A content has come as it should: the extension does not hang.
    func contentCame() { process?.answered() }

    // MARK: Errors

    /// What a status that is no success means to the engine.
    private func refusal(
        _ status: Int, _ retryAfter: String?, _ body: [UInt8], _ method: HTTPMethod, _ path: String
    ) -> ProviderError {
        let isContent = method == .GET && path.hasSuffix("content") || path.contains("/content?")
        let code: ProviderError.Code =
            switch status {
            case 401, 407: .authenticate
            case 404: .notFound
            case 409: .conflict
            case 412: method == .GET ? .stale : .conflict
            case 410: path.hasPrefix("changes") ? .anchorExpired : .notFound
            case 416: isContent ? .stale : .refused
            case 423: .retryAfter(.seconds(2))
            case 429, 503: .retryAfter(retryAfter.flatMap { Int($0) }.map { .seconds(min(max($0, 0), 600)) } ?? .seconds(5))
            case 507: .outOfSpace
            case 400..<500, 501, 505: .refused
            case 300..<400: .permanent
            default: .retry
            }
        let problem = WireCoding.decode(ExtensionProblemDocument.self, from: body)
        let sentence = (problem?.detail ?? problem?.title).map { ": " + ExtensionClient.sentence($0) } ?? ""
        return ProviderError(code, "\(title) answers \(status) to \(method) \(shown(path))\(sentence)")
    }

    /// Text of a stranger, for a message: one line, not long.
    private static func sentence(_ text: String) -> String {
        let short = text.count <= sentenceLengthMax ? text : text.prefix(sentenceLengthMax) + "…"
        return escapedForDisplay(Array(short.utf8))
    }

    /// The path without its query, in which names are.
    private func shown(_ path: String) -> String { "/v1/" + path.prefix { $0 != "?" } }

    /// Why no reply came, or not all of it.
    func meaning(of error: any Error) -> ProviderError {
        switch error {
        case let error as ProviderError: return error
        case is CancellationError: return ProviderError(.cancelled, "the call was cancelled")
        case let stranger as PeerCheck.Stranger:
            return ProviderError(.authenticate, "\(title) is not ours: at its socket listens user \(stranger.user)")
        case let error as HTTPClientError:
            switch error {
            case .cancelled: return ProviderError(.cancelled, "the call was cancelled")
            case .connectTimeout, .readTimeout, .deadlineExceeded:
                process?.fellSilent()
                return ProviderError(.retry, "\(title) does not answer in time")
            // Our own doing, maybe: other calls have all connections, or what is sent is read slowly here.
            case .getConnectionFromPoolTimeout, .writeTimeout:
                return ProviderError(.retry, "\(title) has no time for a call")
            default: return ProviderError(.retry, "\(title) broke off: \(error.shortDescription)")
            }
        case let error as IOError where [ECONNRESET, EPIPE].contains(error.errnoCode):
            return ProviderError(.retry, "\(title) broke off")
        case let error as IOError:
            // EAGAIN: it runs and has too many callers waiting (unix(7)).
            if error.errnoCode != EAGAIN { process?.fellSilent() }
            return unreachable(String(cString: strerror(error.errnoCode)))
        case let error as HTTPParserError where error != .invalidEOFState: return lie("does not speak HTTP")
        default:
            let kind = String(reflecting: type(of: error))
            // Refused connections come in a type that lists every address tried.
            guard kind.hasPrefix("NIOPosix") else { return ProviderError(.retry, "\(title) broke off") }
            process?.fellSilent()
            return unreachable("nobody listens")
        }
    }

    /// A program of ours that was running a moment ago is being started again; one that runs and listens no more is ended soon.
    private func unreachable(_ why: String) -> ProviderError {
        ProviderError(process == nil ? .offline : .retry, "\(title) cannot be reached at its socket: \(why)")
    }
}
