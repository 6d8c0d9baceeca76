import AsyncHTTPClient
import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

/// One server: sends requests with the user's credentials over kept-alive connections, and gives failures of the transport the
/// provider's meaning. What a status means depends on the request: see `ProviderError.init(status:…)`.
///
/// Redirects are followed on the same server only, so that credentials go nowhere else.
final class WebDAVClient: Sendable {
    private static let redirectsMax = 5

    let location: WebDAVLocation
    private let transport: HTTPTransport
    private let source: CredentialSource
    private let authorization: Mutex<String?>

    init(
        location: WebDAVLocation, credentials: CredentialSource, timeouts: HTTPTransport.Timeouts = HTTPTransport.Timeouts()
    ) throws(ProviderError) {
        self.location = location
        source = credentials
        authorization = Mutex(try credentials.authorization())
        transport = HTTPTransport(server: location.origin, timeouts: timeouts)
    }

    // MARK: Requests

    /// Sends a request whose reply is short, and reads it whole.
    func exchange(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPReply {
        let response = try await open(method, url, headers, body: body, timeout: timeout)
        return try await transport.whole(response, method)
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
        var headers = headers
        if let authorization { headers.replaceOrAdd(name: "Authorization", value: authorization) }
        return try await transport.send(
            method, url, headers, body: body, timeout: timeout, isRepeatable: method.isRepeatable,
            takesLong: method.takesLong(headers))
    }

    /// Sends a request whose body fails on the way; whatever comes of it.
    func breakOff(_ method: HTTPMethod, _ url: String, _ body: HTTPClientRequest.Body) async {
        var headers = HTTPHeaders()
        if let authorization = authorization.withLock({ $0 }) { headers.add(name: "Authorization", value: authorization) }
        await transport.breakOff(method, url, headers, body)
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
