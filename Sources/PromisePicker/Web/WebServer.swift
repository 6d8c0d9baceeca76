import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import PromiseKit
import PromiseSystem
import PromiseWire
import Synchronization

/// What a page asks, after the door.
public struct WebRequest: Sendable {
    public var method: String
    public var path: String
    public var query: [String: String]
    public var body: [UInt8]
}

public struct WebResponse: Sendable {
    public var status: Int
    public var type: String
    public var body: [UInt8]
    /// It is a stranger's, for a frame: with scripts, and nothing that they could reach.
    public var isFrame = false

    public init(status: Int = 200, type: String, body: [UInt8]) {
        self.status = status
        self.type = type
        self.body = body
    }

    public static func json(_ document: some Encodable, status: Int = 200) -> WebResponse {
        WebResponse(status: status, type: "application/json", body: WireCoding.bytes(document))
    }

    public static func text(_ text: String, status: Int) -> WebResponse {
        WebResponse(status: status, type: "text/plain; charset=utf-8", body: Array(text.utf8))
    }
}

/// What a page is, and answers.
public protocol WebSite: Sendable {
    var title: String { get }
    /// The script of the page, after what all pages share.
    var script: String { get }
    func answer(_ request: WebRequest) async -> WebResponse
    /// Somebody does or looks at something; a page that waits for news does neither.
    func isUse(_ request: WebRequest) -> Bool
}

extension WebSite {
    public func isUse(_ request: WebRequest) -> Bool { true }
}

/// Serves one page on loopback to the one browser that it was opened in.
public final class WebServer: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    private static let bodyCountMax = 1 << 20
    /// How long a connection may say nothing at first, and another user's may last.
    private static let patience = TimeAmount.seconds(10)
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
        + "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    /// Of another origin than the page and any other; `sandbox` also where it is opened by itself.
    private static let framePolicy =
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        + "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors http://127.0.0.1:"

    /// Nothing that a page asks for can hold up who knocks.
    private static let looks = BlockingPool(name: "door", threads: 1)

    private let site: any WebSite
    private let channel: NIOAsyncChannel<Connection, Never>
    private let door: Mutex<WebDoor>
    private let places = Mutex(Places())
    private let lastAsked: Mutex<ContinuousClock.Instant>
    public let port: Int
    /// With the token behind `#`, which no browser sends to anybody.
    public let address: String

    public init(_ site: any WebSite) async throws {
        self.site = site
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withErrorHandling: true)
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        guard let port = channel.channel.localAddress?.port else {
            throw PromiseError(.local, "no port can be had on 127.0.0.1", exitStatus: 1)
        }
        self.port = port
        let token = WebDoor.secret()
        door = Mutex(WebDoor(port: port, token: token))
        lastAsked = Mutex(.now)
        address = "http://127.0.0.1:\(port)/#\(token)"
    }

    /// Since somebody did something on the page.
    public var idle: Duration { .now - lastAsked.withLock { $0 } }

    /// The page was opened: of what leads to it nothing is of use any more.
    public var isEntered: Bool { door.withLock { $0.isEntered } }

    /// Connections at a time. Those of other users take none from the person.
    private struct Places {
        private static let unknownMax = 128
        private static let oursMax = 32
        private static let strangersMax = 4

        private var unknown = 0
        private var ours = 0
        private var strangers = 0

        mutating func enter() -> Bool {
            guard unknown < Places.unknownMax else { return false }
            unknown += 1
            return true
        }

        /// Whose it is, is known now.
        mutating func take(isOurs: Bool) -> Bool {
            unknown -= 1
            guard isOurs ? ours < Places.oursMax : strangers < Places.strangersMax else { return false }
            if isOurs { ours += 1 } else { strangers += 1 }
            return true
        }

        mutating func leave(isOurs: Bool) {
            if isOurs { ours -= 1 } else { strangers -= 1 }
        }
    }

    /// Until the task is cancelled.
    public func run() async throws {
        try await channel.executeThenClose { connections in
            await withDiscardingTaskGroup { group in
                do {
                    for try await connection in connections {
                        let mayEnter = places.withLock { $0.enter() }
                        group.addTask {
                            if mayEnter {
                                await self.receive(connection)
                            } else {
                                await self.refuse(connection)
                            }
                        }
                    }
                } catch {
                    // The listening socket has gone: nothing more comes.
                }
                group.cancelAll()
            }
        }
    }

    private func receive(_ connection: Connection) async {
        let isOurs = await isOurs(connection.channel.remoteAddress?.port)
        guard places.withLock({ $0.take(isOurs: isOurs) }) else {
            return await refuse(connection)
        }
        defer { places.withLock { $0.leave(isOurs: isOurs) } }
        await serve(connection, isOurs)
    }

    /// One that was never run, and is let go of, traps.
    private func refuse(_ connection: Connection) async {
        try? await connection.executeThenClose { _, _ in }
    }

    private func serve(_ connection: Connection, _ isOurs: Bool) async {
        let channel = connection.channel
        let end = channel.eventLoop.scheduleTask(in: WebServer.patience) {
            channel.close(promise: nil)
        }
        defer { end.cancel() }
        try? await connection.executeThenClose { input, output in
            var head: HTTPRequestHead?
            var body: [UInt8] = []
            for try await part in input {
                switch part {
                case .head(let start):
                    head = start
                    body = []
                case .body(let buffer):
                    body += buffer.readableBytesView
                    guard body.count <= WebServer.bodyCountMax else { return }
                case .end:
                    guard let start = head else { return }
                    if isOurs { end.cancel() }
                    let response = isOurs ? await self.response(to: start, body) : refused(.user)
                    try await write(response, to: start, output)
                    if !start.isKeepAlive { return }
                }
            }
        }
    }

    /// The kernel says whose the connection is. Where it does not, the token alone has to do.
    private func isOurs(_ peer: Int?) async -> Bool {
        guard let peer else { return false }
        let table = await WebServer.looks.run { () throws(Never) -> [UInt8]? in
            readSmallFile(Array("/proc/net/tcp".utf8), countMax: 8 << 20)
        }
        guard let table else { return true }
        let user = WebDoor.user(
            ofPeer: peer, serverPort: port, table: String(decoding: table, as: UTF8.self))
        guard let user else { return true }
        return user == geteuid() || user == 0
    }

    private func response(to head: HTTPRequestHead, _ body: [UInt8]) async -> WebResponse {
        let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(parts.first ?? "")
        let knock = WebDoor.Knock(
            method: head.method.rawValue, path: path, host: head.headers["host"],
            origin: head.headers["origin"],
            site: head.headers["sec-fetch-site"], key: head.headers["x-promisefs-key"],
            isJSON: head.headers["content-type"] == ["application/json"])
        if let refusal = door.withLock({ $0.refusal(of: knock) }) { return refused(refusal) }
        switch (knock.method, path) {
        case ("GET", "/"):
            return WebResponse(
                type: "text/html; charset=utf-8", body: Array(WebPage.html(site.title).utf8))
        case ("GET", "/page.css"):
            return WebResponse(type: "text/css; charset=utf-8", body: Array(WebPage.style.utf8))
        case ("GET", "/page.js"):
            return WebResponse(
                type: "text/javascript; charset=utf-8",
                body: Array((WebPage.script + site.script).utf8))
        case ("POST", "/session"): return session(body)
        default: break
        }
        let query = parts.count > 1 ? WebServer.fields(of: parts[1]) : [:]
        let request = WebRequest(method: knock.method, path: path, query: query, body: body)
        if site.isUse(request) { lastAsked.withLock { $0 = .now } }
        return await site.answer(request)
    }

    private struct Session: Codable {
        var token: String?
        var key: String?
    }

    private func session(_ body: [UInt8]) -> WebResponse {
        guard let token = WireCoding.decode(Session.self, from: body)?.token,
            let key = door.withLock({ $0.exchange(token) })
        else { return refused(.token) }
        return .json(Session(key: key))
    }

    private func refused(_ refusal: WebDoor.Refusal) -> WebResponse {
        .text(
            refusal == .token
                ? "this address has been used, or was never one; ask for a new page on the command line"
                : "refused",
            status: refusal == .method ? 405 : 403)
    }

    private static func fields(of text: Substring) -> [String: String] {
        var fields: [String: String] = [:]
        for field in text.split(separator: "&") {
            let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let bytes = PercentCoding.decode(parts.count > 1 ? parts[1] : "") else {
                continue
            }
            fields[String(parts[0])] = String(decoding: bytes, as: UTF8.self)
        }
        return fields
    }

    private func write(
        _ response: WebResponse, to request: HTTPRequestHead,
        _ output: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
    ) async throws {
        var headers = HTTPHeaders()
        headers.add(name: "content-type", value: response.type)
        headers.add(name: "content-length", value: "\(response.body.count)")
        let policy = response.isFrame ? WebServer.framePolicy + "\(port)" : WebServer.policy
        headers.add(name: "content-security-policy", value: policy)
        if !response.isFrame { headers.add(name: "x-frame-options", value: "DENY") }
        headers.add(name: "x-content-type-options", value: "nosniff")
        headers.add(name: "referrer-policy", value: "no-referrer")
        headers.add(name: "cache-control", value: "no-store")
        headers.add(name: "cross-origin-resource-policy", value: "same-origin")
        headers.add(name: "cross-origin-opener-policy", value: "same-origin")
        headers.add(name: "permissions-policy", value: "camera=(), microphone=(), geolocation=()")
        if !request.isKeepAlive { headers.add(name: "connection", value: "close") }
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status),
            headers: headers)
        try await output.write(.head(head))
        if request.method != .HEAD {
            try await output.write(.body(.byteBuffer(ByteBuffer(bytes: response.body))))
        }
        try await output.write(.end(nil))
    }
}
