import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseProvider
import Synchronization

/// A whole reply.
struct HTTPReply: Sendable {
    var status: Int
    var headers: HTTPHeaders
    var body: Data

    var isSuccess: Bool { (200..<300).contains(status) }
    func header(_ name: String) -> String? { headers.first(name: name) }
}

/// One server: sends requests with the user's credentials over kept-alive connections, and gives failures of the transport the
/// provider's meaning. What a status means depends on the request: see `ProviderError.init(status:…)`.
///
/// Redirects are followed on the same server only, so that credentials go nowhere else.
final class WebDAVClient: Sendable {
    struct Timeouts: Sendable {
        var connect = Duration.seconds(10)
        /// Without a byte in either direction.
        var idle = Duration.seconds(25)
        /// The same for requests over which a server may work long before it says anything: storing what was sent, moving a
        /// tree, listing a large folder.
        var work = Duration.seconds(600)
        /// Until a short request is answered.
        var reply = Duration.seconds(60)
    }

    private static let redirectsMax = 5

    let location: WebDAVLocation
    private let http: HTTPClient
    /// For requests that may take long.
    private let patientHTTP: HTTPClient
    private let timeouts: Timeouts
    private let source: CredentialSource
    private let authorization: Mutex<String?>

    init(location: WebDAVLocation, credentials: CredentialSource, timeouts: Timeouts = Timeouts()) throws(ProviderError) {
        self.location = location
        self.timeouts = timeouts
        source = credentials
        authorization = Mutex(try credentials.authorization())
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .nanoseconds(timeouts.connect.nanoseconds)
        configuration.timeout.read = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.timeout.write = .nanoseconds(timeouts.idle.nanoseconds)
        configuration.redirectConfiguration = .disallow
        configuration.httpVersion = .http1Only
        // A server that is not there is offline, at once; the engine tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 16
        http = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
        configuration.timeout.read = .nanoseconds(timeouts.work.nanoseconds)
        patientHTTP = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    deinit {
        // Connections are closed in the background; nobody waits for it.
        for client in [http, patientHTTP] { client.shutdown { _ in } }
    }

    // MARK: Requests

    /// Sends a request whose reply is short, and reads it whole.
    func exchange(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPReply {
        let response = try await open(method, url, headers, body: body, timeout: timeout)
        do {
            var data = Data()
            for try await part in response.body {
                guard data.count + part.readableBytes <= MultiStatusParser.byteCountMax else {
                    throw ProviderError(.permanent, "the server's answer to \(method) is longer than 1 GiB")
                }
                data.append(contentsOf: part.readableBytesView)
            }
            return HTTPReply(status: Int(response.status.code), headers: response.headers, body: data)
        } catch {
            throw ProviderError(transport: error, method, location)
        }
    }

    /// Sends a request and returns with the head of its reply; the body is read by the caller.
    func open(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPClientResponse {
        var url = url
        var hasReloaded = false
        for _ in 0...WebDAVClient.redirectsMax {
            let sent = authorization.withLock { $0 }
            let response = try await send(method, url, headers, sent, body, timeout)
            switch response.status.code {
            case 401 where !hasReloaded && body?.isRepeatable != false:
                // The file may have been mended meanwhile.
                hasReloaded = true
                guard let fresh = try source.authorization(), fresh != sent else { return response }
                authorization.withLock { $0 = fresh }
            case 301, 302, 307, 308:
                guard body?.isRepeatable != false, let target = response.headers.first(name: "location") else { return response }
                url = try redirected(from: url, to: target)
            default: return response
            }
        }
        throw ProviderError(.permanent, "\(location.origin) redirects in a circle: check the address")
    }

    private func send(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders, _ authorization: String?, _ body: RequestBody?,
        _ timeout: Duration?
    ) async throws(ProviderError) -> HTTPClientResponse {
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        var request = HTTPClientRequest(url: url)
        request.method = method
        request.headers = headers
        request.headers.replaceOrAdd(name: "User-Agent", value: "promisefs")
        if let authorization { request.headers.replaceOrAdd(name: "Authorization", value: authorization) }
        if let body { request.body = body.forClient }
        let limit = TimeAmount.nanoseconds((timeout ?? timeouts.reply).nanoseconds)
        let http = method.takesLong(headers) ? patientHTTP : http
        do {
            return try await http.execute(request, timeout: limit)
        } catch let error as HTTPClientError where error == .remoteConnectionClosed && method.isRepeatable {
            // A kept connection that the server had closed already.
            do {
                return try await http.execute(request, timeout: limit)
            } catch {
                throw ProviderError(transport: error, method, location)
            }
        } catch {
            // Reading the file failed, not sending it.
            if case .file(let file) = body, let problem = file.problem.error { throw problem }
            throw ProviderError(transport: error, method, location)
        }
    }

    /// Sends a request whose body fails on the way; whatever comes of it.
    func breakOff(_ method: HTTPMethod, _ url: String, _ body: HTTPClientRequest.Body) async {
        var request = HTTPClientRequest(url: url)
        request.method = method
        request.headers.add(name: "User-Agent", value: "promisefs")
        if let authorization = authorization.withLock({ $0 }) { request.headers.add(name: "Authorization", value: authorization) }
        request.body = body
        _ = try? await http.execute(request, timeout: .seconds(10))
    }

    private func redirected(from url: String, to target: String) throws(ProviderError) -> String {
        guard let base = URL(string: url), let next = URL(string: target, relativeTo: base)?.absoluteURL,
            next.host == base.host, next.port == base.port, next.scheme == base.scheme
        else {
            // A query may hold a secret, as a password may be in the address.
            let shown = WebDAVLocation.withoutPassword(String(target.prefix { $0 != "?" && $0 != "#" }))
            throw ProviderError(.permanent, "\(location.origin) redirects to '\(shown)': mount that address")
        }
        return next.absoluteString
    }
}

extension HTTPMethod {
    /// Sending it twice is as good as once.
    fileprivate var isRepeatable: Bool { [.GET, .HEAD, .PROPFIND, .OPTIONS].contains(self) }

    /// A look at one item is short, and tells soon that a server is away.
    fileprivate func takesLong(_ headers: HTTPHeaders) -> Bool {
        self == .PUT || self == .MOVE || (self == .PROPFIND && headers.first(name: "Depth") != "0")
    }
}

extension ProviderError {
    /// Why no reply came. No message mentions a URL's user, a header or a body.
    init(transport error: any Error, _ method: HTTPMethod, _ location: WebDAVLocation) {
        if let error = error as? ProviderError {
            self = error
            return
        }
        let server = location.origin
        switch error {
        case is CancellationError: self.init(.cancelled, "the call was cancelled")
        case let error as HTTPClientError:
            switch error {
            case .cancelled: self.init(.cancelled, "the call was cancelled")
            case .connectTimeout, .getConnectionFromPoolTimeout:
                self.init(.offline, "\(server) cannot be reached: no connection within the time for one")
            case .tlsHandshakeTimeout: self.init(.offline, "\(server) does not complete a TLS handshake")
            case .readTimeout, .writeTimeout, .deadlineExceeded:
                self.init(.retry, "\(server) does not answer \(method) in time")
            default: self.init(.retry, "\(server) broke off \(method): \(error.shortDescription)")
            }
        case let error as IOError where [ECONNRESET, EPIPE].contains(error.errnoCode):
            self.init(.retry, "\(server) broke off \(method)")
        case let error as IOError:
            self.init(.offline, "\(server) cannot be reached: \(String(cString: strerror(error.errnoCode)))")
        case is ChannelError: self.init(.retry, "\(server) broke off \(method)")
        default:
            let kind = String(reflecting: type(of: error))
            if kind.hasPrefix("NIOSSL") {
                self.init(.authenticate, "\(server) cannot be trusted (TLS: \(error)): check its certificate")
            } else if kind.hasPrefix("NIOPosix") || kind.hasPrefix("NIOCore.SocketAddressError") {
                // Refused connections and unknown hosts come in a type that lists every address tried.
                self.init(.offline, "\(server) cannot be reached: \(ProviderError.shortened("\(error)"))")
            } else {
                self.init(.retry, "\(server) broke off \(method): \(ProviderError.shortened("\(error)"))")
            }
        }
    }

    private static func shortened(_ text: String) -> String {
        let line = text.split(separator: "\n").first ?? ""
        return line.count <= 200 ? String(line) : line.prefix(200) + "…"
    }
}

extension CredentialSource {
    /// The value of the header `Authorization`; nil when there are no credentials.
    func authorization() throws(ProviderError) -> String? {
        switch try credentials() {
        case .password(let user, let password):
            HTTPClient.Authorization.basic(username: user, password: password.value).headerValue
        case .token(let token): HTTPClient.Authorization.bearer(tokens: token.value).headerValue
        case nil: nil
        }
    }
}
