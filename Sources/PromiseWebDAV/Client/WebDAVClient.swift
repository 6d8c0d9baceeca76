import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// One server: sends requests with the user's credentials over kept-alive connections, and gives failures of the transport the
/// provider's meaning. What a status means depends on the request: see `ProviderError.init(status:…)`.
///
/// Redirects are followed on the same server only, so that credentials go nowhere else.
final class WebDAVClient: Sendable {
    private static let redirectsMax = 5
    /// How the server wants the password, and a second time as what it gave for that was too old.
    private static let lessonsMax = 2

    let location: WebDAVLocation
    private let transport: HTTPTransport
    private let source: CredentialSource
    private let clock: any TimeSource
    private let relay: (any ServerRelay)?
    private let authorization: Mutex<Authorization>
    private let cookies: Mutex<CookieJar>
    private let digestMemory: DigestMemory?

    init(
        location: WebDAVLocation, credentials: CredentialSource, trust: ServerTrust = .system, clock: any TimeSource,
        digestMemory: DigestMemory? = nil, timeouts: HTTPTransport.Timeouts = HTTPTransport.Timeouts(),
        relay: (any ServerRelay)? = nil
    ) throws(ProviderError) {
        self.location = location
        self.clock = clock
        self.relay = relay
        source = credentials
        self.digestMemory = digestMemory
        authorization = Mutex(
            Authorization(
                try credentials.credentials(), isOpen: !location.isEncrypted,
                hasAskedForDigest: digestMemory?.hasAsked ?? false))
        cookies = Mutex(CookieJar(host: location.host, isEncrypted: location.isEncrypted))
        transport = try HTTPTransport(server: location.origin, trust: trust, timeouts: timeouts)
    }

    var executor: LoopExecutor { transport.executor }
    var faultLine: FaultLine { transport.faultLine }
    var lineLimit: LineLimit { transport.lineLimit }
    var isRelayed: Bool { relay != nil }

    // MARK: Requests

    /// Sends a request whose reply is short, and reads it whole.
    func exchange(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPReply {
        let response = try await open(method, url, headers, body: body, timeout: timeout)
        // A look is about one item.
        let isLook = method == .PROPFIND && headers.first(name: "Depth") == "0"
        let reply = try await transport.whole(response, method, isShort: isLook ? true : nil)
        try await SuccessOfStrangers(client: self, method: method, url: url, headers: headers, body: body).check(reply)
        return reply
    }

    /// Of what is expected to be of that size: nil when it says that it is of another one, or when
    /// there is more of it, or less, as of a body without a length that broke off.
    func content(
        _ url: String, _ headers: HTTPHeaders = [:], byteCount: UInt64
    ) async throws(ProviderError) -> HTTPReply? {
        let response = try await open(.GET, url, headers)
        if response.status == .ok, let size = ReplyContent.wholeSize(response), size != byteCount { return nil }
        guard (200..<300).contains(response.status.code) else { return try await transport.whole(response, .GET) }
        var data = Data()
        try await transport.read(response, .GET) { (part) throws(ProviderError) in
            data.append(contentsOf: part.readableBytesView)
            return data.count <= byteCount
        }
        guard data.count == byteCount else { return nil }
        return HTTPReply(status: Int(response.status.code), headers: response.headers, body: data)
    }

    /// With what HEAD says, of a file of which a look does not tell enough.
    func completed(_ resource: ResourceStatus, _ url: String) async throws(ProviderError) -> ResourceStatus {
        guard resource.lack != nil else { return resource }
        var result = resource
        let reply = try await exchange(.HEAD, url)
        // A page that says "log in" has a length, too.
        guard reply.status == 200, reply.header("ETag") != nil || reply.header("Last-Modified") != nil else { return resource }
        result.entityTag = result.entityTag ?? reply.header("ETag")
        result.lastModified = result.lastModified ?? reply.header("Last-Modified")
        let length = reply.header("Content-Length").flatMap { ItemSize.read($0) }
        result.contentLength = result.contentLength ?? length
        return result
    }

    /// Reads what is left of a reply that `open` returned with.
    func whole(_ response: HTTPClientResponse, _ method: HTTPMethod) async throws(ProviderError) -> HTTPReply {
        try await transport.whole(response, method)
    }

    /// Hands it on as it comes, until `take` returns false.
    func read(
        _ response: HTTPClientResponse, _ method: HTTPMethod, _ take: (ByteBuffer) async throws(ProviderError) -> Bool
    ) async throws(ProviderError) {
        try await transport.read(response, method, take)
    }

    /// Sends a request and returns with the head of its reply; the body is read by the caller.
    func open(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        timeout: Duration? = nil
    ) async throws(ProviderError) -> HTTPClientResponse {
        // A server that wants to be asked anew may say so, and close the connection, while a large body is still on its way.
        if body?.isRepeatable == false, authorization.withLock({ $0.mayBeAsked }) {
            _ = try await exchange(.OPTIONS, url)
        }
        let asked = url
        var url = url
        var (redirects, lessons, hasReloaded, isForgotten) = (0, 0, false, false)
        while redirects <= WebDAVClient.redirectsMax {
            let sent = value(method, url)
            let cookie = cookies.withLock { $0.value(path: WebDAVClient.path(url), at: clock.now()) }
            let response = try await send(method, url, headers, sent, cookie, body, timeout)
            switch response.status.code {
            case 401 where cookie != nil && !isForgotten:
                // The server may have ended what they stand for.
                isForgotten = true
                cookies.withLock { $0.empty() }
            case 401 where lessons < WebDAVClient.lessonsMax && learn(response, sent, isFirst: lessons == 0):
                lessons += 1
            case 401 where !hasReloaded:
                // The file may have been mended meanwhile.
                hasReloaded = true
                guard try reload(unlike: sent, response) else { return response }
            case let code where sent == nil && tellsUnasked(method, code): continue
            case 301, 302, 307, 308:
                guard let target = response.headers.first(name: "location") else { return response }
                guard let next = WebDAVClient.sameServer(url, target) else { throw await elsewhere(target, from: asked) }
                guard body?.isRepeatable != false else { return response }
                url = next
                redirects += 1
            default: return response
            }
        }
        throw ProviderError(.permanent, "\(location.origin) redirects in a circle: check the address")
    }

    /// The answer was a stranger's. What anybody may be told of a server says nothing of that.
    private func tellsUnasked(_ method: HTTPMethod, _ code: UInt) -> Bool {
        guard [.OPTIONS, .PROPFIND, .GET, .HEAD].contains(method), code < 500,
            !(method == .OPTIONS && code < 300)
        else { return false }
        return authorization.withLock { $0.tellUnasked() }
    }

    private func value(_ method: HTTPMethod, _ url: String) -> String? {
        authorization.withLock { $0.value(method: method.rawValue, target: WebDAVClient.target(url)) }
    }

    /// True when the request is to be sent again as the server wants it.
    private func learn(_ response: HTTPClientResponse, _ sent: String?, isFirst: Bool) -> Bool {
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 36)
        let asked = response.headers["WWW-Authenticate"]
        let (isNews, goesOn) = authorization.withLock { authorization in
            let hadAsked = authorization.hasAskedForDigest
            let goesOn = authorization.learn(asked, sent: sent, isFirst: isFirst, clientNonce: nonce)
            return (authorization.hasAskedForDigest && !hadAsked, goesOn)
        }
        if isNews { digestMemory?.note() }
        return goesOn
    }

    /// True when there are other credentials than those that were refused.
    private func reload(unlike sent: String?, _ response: HTTPClientResponse) throws(ProviderError) -> Bool {
        guard let fresh = try source.credentials() else { return false }
        let isNew = authorization.withLock { authorization in
            guard authorization.credentials != fresh else { return false }
            authorization = authorization.renewed(fresh)
            return true
        }
        if isNew { _ = learn(response, nil, isFirst: true) }
        return isNew
    }

    private static func path(_ url: String) -> String { String(target(url).prefix { $0 != "?" }) }

    /// What a request asks for, as it is sent.
    private static func target(_ url: String) -> String {
        guard let start = url.range(of: "://")?.upperBound, let slash = url[start...].firstIndex(of: "/") else { return "/" }
        return String(url[slash...].prefix { $0 != "#" })
    }

    private func send(
        _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders, _ authorization: String?, _ cookie: String?,
        _ body: RequestBody?, _ timeout: Duration?
    ) async throws(ProviderError) -> HTTPClientResponse {
        var headers = headers
        // To say nothing is to allow everything (RFC 9110, section 12.5.3).
        headers.replaceOrAdd(name: "Accept-Encoding", value: "identity")
        if let authorization { headers.replaceOrAdd(name: "Authorization", value: authorization) }
        if let cookie { headers.replaceOrAdd(name: "Cookie", value: cookie) }
        let url = try await relayed(method, url, &headers)
        let response = try await transport.send(
            method, url, headers, body: body, timeout: timeout, isRepeatable: method.isRepeatable,
            takesLong: relay != nil || method.takesLong(headers))
        // Whom it does not know yet it would know by them for nobody.
        if response.status != .unauthorized { cookies.withLock { $0.take(response.headers, at: clock.now()) } }
        return response
    }

    /// Where the request really goes.
    private func relayed(
        _ method: HTTPMethod, _ url: String, _ headers: inout HTTPHeaders
    ) async throws(ProviderError) -> String {
        guard let relay else { return url }
        let places = [url] + headers["Destination"]
        let paths = [.PUT, .OPTIONS, .UNLOCK].contains(method) ? [] : places.map { WebDAVClient.path($0) }
        let station = try await relay.station(lookingAt: paths)
        // Other places in the headers are compared with it.
        headers.replaceOrAdd(name: "Host", value: location.authority)
        headers.replaceOrAdd(name: "Authorization", value: station.authorization)
        return station.origin + WebDAVClient.target(url)
    }

    /// Sends a request whose body fails on the way; whatever comes of it.
    func breakOff(
        _ method: HTTPMethod, _ url: String, _ body: HTTPClientRequest.Body, _ headers: HTTPHeaders = [:]
    ) async {
        var headers = headers
        if let authorization = value(method, url) { headers.add(name: "Authorization", value: authorization) }
        guard let url = try? await relayed(method, url, &headers) else { return }
        await transport.breakOff(method, url, headers, body)
    }

    /// Where a redirect leads; nil when that is another server.
    private static func sameServer(_ url: String, _ target: String) -> String? {
        guard let base = URL(string: url), let next = URL(string: target, relativeTo: base)?.absoluteURL,
            next.host == base.host, next.port == base.port, next.scheme == base.scheme
        else { return nil }
        return next.absoluteString
    }

    /// The storage may be there now, and then all that waits waits for somebody to say so. It may be one item as well: the folder
    /// that is mounted is asked for, too.
    private func elsewhere(_ target: String, from url: String) async -> ProviderError {
        // A query may hold a secret, as a password may be in the address.
        let shown = WebDAVLocation.withoutPassword(String(target.prefix { $0 != "?" && $0 != "#" }))
        let root = location.url([], isFolder: true)
        guard url != root else {
            return ProviderError(
                .authenticate,
                "\(location.origin) redirects to '\(shown)', where no password is sent: log in there if this network wants that; "
                    + "if the storage has moved, mount that address. What is not sent yet waits")
        }
        do throws(ProviderError) {
            _ = try await exchange(.PROPFIND, root, ["Depth": "0"])
        } catch {
            if error.code == .authenticate { return error }
        }
        return ProviderError(
            .permanent, "the server keeps it elsewhere, at '\(shown)', and passwords go to \(location.origin) only")
    }
}

extension HTTPMethod {
    /// Sending it twice is as good as once.
    fileprivate var isRepeatable: Bool { [.GET, .HEAD, .PROPFIND, .OPTIONS].contains(self) }

    /// A look at one item is short, and tells soon that a server is away.
    fileprivate func takesLong(_ headers: HTTPHeaders) -> Bool {
        [.PUT, .PATCH, .MOVE, .COPY].contains(self) || (self == .PROPFIND && headers.first(name: "Depth") != "0")
    }
}
