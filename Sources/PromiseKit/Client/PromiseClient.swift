import AsyncHTTPClient
import Glibc
import NIOCore
import NIOHTTP1
import PromiseCore
public import PromiseWire
import Synchronization

/// Talks to the daemon of one domain over its control socket.
///
/// Safe to use from any number of tasks. Cancelling a task ends its request; a fetch or a wait then stops in the daemon too.
public final class PromiseClient: Sendable {
    public let socketPath: String
    /// For messages.
    public let domain: String

    private static let successorPatience = Duration.milliseconds(1500)
    private static let isPatient = Atomic<Bool>(false)

    /// From now on requests of this process wait a moment for the successor of a daemon that has died, as programs on
    /// the mount do. Not for who keeps something of a daemon, as a presenter does, and has to hear of its end first.
    public static func waitForSuccessors() { isPatient.store(true, ordering: .relaxed) }

    /// One for the process and never shut down, so that its connections close with the process.
    private static let http = connections()

    static func connections() -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .seconds(5)
        configuration.redirectConfiguration = .disallow
        // `reached` tries again, and not for as long.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Each stream has one for as long as it lives, and nothing else is to wait for that.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1024
        return HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    public init(socketPath: String, domain: String) {
        self.socketPath = socketPath
        self.domain = domain
    }

    /// For the daemon of a mount: looks for its socket where daemons put it.
    public convenience init(mount: MountEntry) throws(PromiseError) {
        let runtimeFolder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) }
        let user = geteuid()
        let paths = ControlSocket.candidates(
            domain: mount.domain, mountUser: mount.user, user: user, runtimeFolder: runtimeFolder)
        var path = paths.first { isSocket($0, of: mount.user) } ?? boundSocket(of: mount)
        guard path != nil || user == 0 || user == mount.user else { throw PromiseClient.notOwn(mount) }
        if path == nil, PromiseClient.isPatient.load(ordering: .relaxed) {
            // The successor of a daemon that has died is about to make it.
            path = paths.first(where: hasFolder)
        }
        guard let path else { throw PromiseClient.notAnswering(mount.domain) }
        self.init(socketPath: path, domain: mount.domain)
    }

    // MARK: - Questions

    public func status() async throws(PromiseError) -> StatusDocument {
        try await reply("GET", "status", deadline: .seconds(8))
    }

    /// `path` is bytes from the root of the domain.
    public func information(path: [UInt8]) async throws(PromiseError) -> ItemDocument {
        try await reply("GET", "items?path=/" + PercentCoding.encode(path), deadline: .minutes(2))
    }

    public func information(node: UInt64) async throws(PromiseError) -> ItemDocument {
        try await reply("GET", "items?node=\(node)", deadline: .minutes(2))
    }

    /// Promised values of items: what is known of them without their content, placeholders or not. `keys` are those of
    /// docs/QUERIES.md; nil: all. Nothing is fetched.
    public func promisedValues(
        _ keys: [PromisedKey]? = nil, of paths: [[UInt8]]
    ) async throws(PromiseError) -> PromisedValuesDocument {
        var sum = PromisedValuesDocument(items: [], failures: [])
        for part in pieces(of: paths) {
            let request = ItemsRequest(paths: part, keys: keys?.map(\.rawValue))
            let reply: PromisedValuesDocument = try await reply("POST", "items/values", request, deadline: .minutes(10))
            sum.items += reply.items
            sum.failures += reply.failures
        }
        return sum
    }

    /// The versions of a document that are known, the current one first. Nothing is fetched.
    public func versions(of path: [UInt8]) async throws(PromiseError) -> VersionsDocument {
        try await reply("GET", "items/versions?path=/" + PercentCoding.encode(path), deadline: .minutes(2))
    }

    /// The same, and what the document was before as far as the provider has kept it, which is asked.
    public func versionsAndEarlier(of path: [UInt8]) async throws(PromiseError) -> VersionsDocument {
        try await reply("GET", "items/versions?earlier=true&path=/" + PercentCoding.encode(path), deadline: .minutes(10))
    }

    /// The bytes of an earlier version, given to `take` as they come.
    public func contents(
        ofEarlier identifier: String, of path: [UInt8], take: @Sendable ([UInt8]) throws -> Void
    ) async throws(PromiseError) {
        let version = PercentCoding.encode(Array(identifier.utf8)).replacingSlashes()
        let query = "items/versions/content?version=\(version)&path=/" + PercentCoding.encode(path)
        let response = try await send("GET", query, nil, deadline: .hours(24))
        let reader = BodyReader(response.body, self)
        while let piece = try await reader.next() {
            try await mapped { try take(Array(piece.readableBytesView)) }
        }
    }

    /// A PNG of at most `size` pixels a side: saved by an application, made of content that is here, or offered by the provider.
    /// Content is never fetched. Throws `.refused` with the code `notFound` when there is none.
    public func thumbnail(of path: [UInt8], size: Int = 1024) async throws(PromiseError) -> [UInt8] {
        let query = "items/thumbnail?size=\(size)&path=/" + PercentCoding.encode(path)
        return try await picture(query)
    }

    func picture(_ query: String) async throws(PromiseError) -> [UInt8] {
        let response = try await send("GET", query, nil, deadline: .minutes(2))
        let limit = RequestLimit.thumbnailByteCountMax
        return try await mapped { Array(try await response.body.collect(upTo: limit).readableBytesView) }
    }

    /// Keeps a PNG of at most 1024 pixels a side as the picture of a document as it is now: to be called after saving it.
    public func saveThumbnail(_ picture: [UInt8], of path: [UInt8]) async throws(PromiseError) {
        let response = try await send(
            "PUT", "items/thumbnail?path=/" + PercentCoding.encode(path), bytes: picture, deadline: .minutes(2))
        _ = try await mapped { try await response.body.collect(upTo: 1 << 20) }
    }

    /// Work queued or running below a path; nil: in the whole domain.
    /// `excluded`: instead, what stays on this machine for its name or its kind.
    public func pending(path: [UInt8]? = nil, excluded: Bool = false) async throws(PromiseError) -> PendingDocument {
        let query = ["excluded=\(excluded)"] + (path.map { ["path=/" + PercentCoding.encode($0)] } ?? [])
        return try await reply("GET", "pending?" + query.joined(separator: "&"), deadline: .minutes(2))
    }

    /// Carries out one piece of pending work and returns it when the provider has answered; nil: there was
    /// nothing that could be done. Nothing more goes by itself until `synchronize`.
    public func stepPending() async throws(PromiseError) -> PendingItemDocument? {
        let document: PendingDocument = try await reply("POST", "pending/step", deadline: .hours(1))
        return document.items.first
    }

    /// Nothing is sent and nothing is fetched by itself, also after the next mount, until `resume`.
    public func pause() async throws(PromiseError) -> StatusDocument {
        try await reply("POST", "pause", deadline: .seconds(30))
    }

    public func resume() async throws(PromiseError) -> StatusDocument {
        try await reply("POST", "resume", deadline: .seconds(30))
    }

    /// How much is kept here at most, and how fast bytes go, also after the next mount; what is not named stays.
    public func setLimits(_ limits: LimitsRequest) async throws(PromiseError) -> StatusDocument {
        try await reply("POST", "limits", limits, deadline: .seconds(30))
    }

    /// The changes after a sequence number, oldest first, a part of them at a time.
    /// `journal`: whose number that is; another one's is refused.
    public func changes(since sequence: Int64, journal: String? = nil) async throws(PromiseError) -> ChangesDocument {
        let whose = journal.map { "&journal=" + PercentCoding.encode(Array($0.utf8)) } ?? ""
        return try await reply("GET", "changes?since=\(sequence)" + whose, deadline: .minutes(2))
    }

    // MARK: - Actions

    /// Brings content here. `progress` is called now and then, from any thread. Items that failed are in the result.
    public func fetch(
        _ paths: [[UInt8]], progress: @Sendable (ProgressDocument) -> Void = { _ in }
    ) async throws(PromiseError) -> ProgressDocument {
        var sum = ProgressDocument(filesDone: 0, filesTotal: 0, bytesDone: 0, bytesTotal: 0, failures: [])
        for part in pieces(of: paths) {
            let before = sum
            let last: ProgressDocument = try await events("items/fetch", ItemsRequest(paths: part)) { event in
                guard event.name == "progress" else { return }
                if let now = WireCoding.decode(ProgressDocument.self, from: Array(event.data.utf8)) { progress(before + now) }
            }
            sum = before + last
        }
        return sum
    }

    public func evict(_ paths: [[UInt8]]) async throws(PromiseError) -> EvictionDocument {
        var sum = EvictionDocument(evicted: 0, bytesFreed: 0, kept: [], failures: [])
        for part in pieces(of: paths) {
            let request = ItemsRequest(paths: part, purpose: FileCoordinator.inheritedPurpose)
            let reply: EvictionDocument = try await reply("POST", "items/evict", request, deadline: .hours(24))
            sum.evicted += reply.evicted
            sum.bytesFreed += reply.bytesFreed
            sum.kept += reply.kept
            sum.failures += reply.failures
        }
        return sum
    }

    /// `pin` is `pinned`, `online-only` or `automatic`.
    public func setPin(_ pin: String, of paths: [[UInt8]]) async throws(PromiseError) -> PinDocument {
        var sum = PinDocument(pin: pin, items: 0, failures: [])
        for part in pieces(of: paths) {
            let reply: PinDocument = try await reply(
                "POST", "items/pin", ItemsRequest(paths: part, pin: pin), deadline: .hours(24))
            sum.items += reply.items
            sum.failures += reply.failures
        }
        return sum
    }

    /// Has the daemon look at the provider now; with `wait`, returns when nothing is pending below `path`.
    public func synchronize(
        path: [UInt8]? = nil, wait: Bool = false, timeout: Duration? = nil
    ) async throws(PromiseError) -> SyncDocument {
        let request = SyncRequest(
            path: path.map { "/" + PercentCoding.encode($0) }, wait: wait, timeoutSeconds: timeout?.inSeconds)
        if wait { return try await events("sync", request) { _ in } }
        return try await reply("POST", "sync", request, deadline: .hours(1))
    }

    public func verify(repair: Bool, provider: Bool = false) async throws(PromiseError) -> VerifyDocument {
        try await reply("POST", "verify", VerifyRequest(repair: repair, provider: provider), deadline: .hours(24))
    }

    /// Unmounts; the daemon ends afterwards. Says how many items are left for the next mount.
    public func unmount(wait: Bool = false, timeout: Duration? = nil, lazy: Bool = false) async throws(PromiseError)
        -> UnmountDocument
    {
        let request = UnmountRequest(wait: wait, timeoutSeconds: timeout?.inSeconds, lazy: lazy)
        return try await reply("POST", "unmount", request, deadline: wait ? .hours(24 * 365) : .minutes(5))
    }

    /// Replaces the daemon by a new process of the executable that is installed now; the mount stays, and programs wait for a
    /// moment. Returns when the new one answers. Fails where the mount would end with its daemon, and where it is made
    /// anew (`--io-uring`) while files are open.
    public func restart(patience: Duration = .seconds(60)) async throws(PromiseError) -> StatusDocument {
        let before = try await status()
        do throws(PromiseError) {
            let _: UnmountDocument = try await reply("POST", "restart", UnmountRequest(), deadline: .seconds(30))
        } catch {
            guard error.kind == .brokenReply || error.kind == .notAnswering else { throw error }
        }
        let start = ContinuousClock.now
        while true {
            do throws(PromiseError) {
                let now = try await status()
                if now.processID != before.processID { return now }
                guard ContinuousClock.now - start < patience else {
                    throw PromiseError(.brokenReply, "the daemon goes on as it was; see its log", exitStatus: 1)
                }
            } catch {
                guard ContinuousClock.now - start < patience else { throw error }
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    // MARK: - Requests

    /// A request takes so many paths and so many bytes, so large lists are sent in pieces.
    func pieces(of paths: [[UInt8]]) -> [[String]] {
        var result: [[String]] = []
        var current: [String] = []
        var byteCount = 0
        for path in paths {
            let text = "/" + PercentCoding.encode(path)
            if current.count == RequestLimit.pathCountMax || byteCount + text.utf8.count > RequestLimit.bodyByteCountMax / 2 {
                result.append(current)
                current = []
                byteCount = 0
            }
            current.append(text)
            byteCount += text.utf8.count + 3
        }
        return current.isEmpty ? result : result + [current]
    }

    func reply<Document: Decodable>(
        _ method: String, _ path: String, _ body: (any Encodable & Sendable)? = nil, deadline: TimeAmount
    ) async throws(PromiseError) -> Document {
        let response = try await send(method, path, body, deadline: deadline)
        let bytes = try await mapped { Array(try await response.body.collect(upTo: 1 << 30).readableBytesView) }
        guard let document = WireCoding.decode(Document.self, from: bytes) else {
            throw PromiseError(.brokenReply, "the daemon of '\(domain)' gave a reply that is no \(Document.self)", exitStatus: 1)
        }
        return document
    }

    /// Reads events up to `done`, whose data is returned; `problem` is thrown.
    private func events<Document: Decodable>(
        _ path: String, _ body: any Encodable & Sendable, each: @Sendable (ServerEvent) -> Void
    ) async throws(PromiseError) -> Document {
        var events = try await stream("POST", path, body).makeAsyncIterator()
        while let event = try await events.next() {
            guard event.name == "done" else {
                each(event)
                continue
            }
            let data = Array(event.data.utf8)
            guard let document = WireCoding.decode(Document.self, from: data) else {
                let what = "gave an event that is no \(Document.self)"
                throw PromiseError(
                    .brokenReply, "the daemon of '\(domain)' \(what)", exitStatus: 1)
            }
            return document
        }
        throw PromiseError(
            .brokenReply, "the daemon of '\(domain)' ended before it was done; look at its log",
            exitStatus: 1)
    }

    func send(
        _ method: String, _ path: String, _ body: (any Encodable & Sendable)?, deadline: TimeAmount
    ) async throws(PromiseError) -> HTTPClientResponse {
        try await send(method, path, bytes: body.map { WireCoding.bytes($0) }, deadline: deadline)
    }

    private func send(
        _ method: String, _ path: String, bytes: [UInt8]?, deadline: TimeAmount
    ) async throws(PromiseError) -> HTTPClientResponse {
        try await send(method, path, content: bytes.map { .bytes(ByteBuffer(bytes: $0)) }, deadline: deadline)
    }

    func send(
        _ method: String, _ path: String, content: HTTPClientRequest.Body?, deadline: TimeAmount
    ) async throws(PromiseError) -> HTTPClientResponse {
        var request = request(method, path)
        if let content {
            request.headers.add(name: "content-type", value: method == "PUT" ? "image/png" : "application/json")
            request.body = content
        }
        let ready = request
        let response = try await reached {
            try await whileItAnswers { try await PromiseClient.http.execute(ready, deadline: .now() + deadline) }
        }
        guard response.status.code >= 300 else { return response }
        let reason = try await mapped { Array(try await response.body.collect(upTo: 1 << 20).readableBytesView) }
        if let problem = WireCoding.decode(ProblemDocument.self, from: reason) { throw PromiseError(problem) }
        throw PromiseError(
            .brokenReply, "the daemon of '\(domain)' replied \(response.status.code) without saying why", exitStatus: 1)
    }

    func request(_ method: String, _ path: String) -> HTTPClientRequest {
        let host = PercentCoding.encode(Array(socketPath.utf8)).replacingSlashes()
        var request = HTTPClientRequest(url: "http+unix://\(host)/\(WireCoding.version)/\(path)")
        request.method = .init(rawValue: method)
        // The host of the address is the socket's path, which is no host name.
        request.headers.add(name: "host", value: "promisefs")
        return request
    }

    private func reached(
        _ body: @Sendable () async throws -> HTTPClientResponse
    ) async throws(PromiseError) -> HTTPClientResponse {
        guard PromiseClient.isPatient.load(ordering: .relaxed) else { return try await mapped(body) }
        let start = ContinuousClock.now
        while true {
            do throws(PromiseError) {
                return try await mapped(body)
            } catch {
                let isOver = ContinuousClock.now - start >= PromiseClient.successorPatience
                guard error.kind == .notAnswering, !isOver, !Task.isCancelled else { throw error }
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    private func mapped<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws(PromiseError) -> Value {
        do {
            return try await body()
        } catch {
            throw PromiseClient.meaning(of: error, domain: domain)
        }
    }
}

extension ProgressDocument {
    fileprivate static func + (left: ProgressDocument, right: ProgressDocument) -> ProgressDocument {
        ProgressDocument(
            filesDone: left.filesDone + right.filesDone, filesTotal: left.filesTotal + right.filesTotal,
            bytesDone: left.bytesDone.plus(right.bytesDone),
            bytesTotal: left.bytesTotal.plus(right.bytesTotal),
            failures: left.failures + right.failures)
    }
}

extension String {
    /// A host has no slash.
    func replacingSlashes() -> String {
        split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
    }
}

extension Duration {
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
