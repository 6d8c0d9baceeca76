package import AsyncHTTPClient
import Crypto
import Foundation
package import Logging
package import NIOCore
package import NIOHTTP1
import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// What is sent to a bucket.
package struct S3Request: Sendable {
    package var method: HTTPMethod
    /// Nil: the bucket itself.
    package var key: [UInt8]?
    package var query: [QueryItem] = []
    package var headers: HTTPHeaders = [:]
    package var body: ByteBuffer?
    /// What `body` is content of, which is told what was sent of it.
    var source: (any ContentSource)?
    /// The SHA-256 of `body`, by whoever has it.
    var bodyHash: String?
    /// Instead of `body`, of what is too large to be held in memory; with the SHA-256 of it where that is signed.
    var file: (body: FileBody, hash: String?)?
    /// Sending it twice is as good as once.
    package var isRepeatable: Bool
    /// It is sent again where the server says that it has not looked at it: what there is when it was carried out
    /// without an answer may be something else.
    package var isRepeatableIfRefused = false
    /// The server may work on it long before it answers: it makes a copy, or a whole of many parts.
    package var takesLong: Bool {
        let completes = method == .POST && query.contains { $0.name == "uploadId" }
        return completes || headers.contains(name: "X-Amz-Copy-Source")
    }

    package init(_ method: HTTPMethod, _ key: [UInt8]?, _ query: [QueryItem] = [], _ headers: HTTPHeaders = [:]) {
        self.method = method
        self.key = key
        self.query = query
        self.headers = headers
        isRepeatable = [.GET, .HEAD].contains(method)
    }

    fileprivate var isRead: Bool { [.GET, .HEAD].contains(method) }
}

/// One bucket on one server: signs, sends, and repeats what may be repeated when the server is busy.
package final class S3Client: Sendable {
    /// Before the first repetition; each further one waits twice as long, and a random part more, so that many clients that
    /// were refused together do not come back together.
    private static let firstPause = Duration.milliseconds(150)
    private static let attemptsMax = 5
    /// A server that asks for more is left to the engine, which tells the user.
    private static let pauseMax = Duration.seconds(5)
    private static let uploadTimeout = Duration.seconds(3600)

    package let location: S3Location
    let transport: HTTPTransport
    private let signingKeys = SigningKeys()
    private let source: AccessKeySource
    private let clock: any TimeSource
    private let pool: BlockingPool
    /// Where there is no other key.
    private let temporary: TemporaryKeys?
    private struct State: Sendable {
        /// Nil: a temporary one, or requests are not signed.
        var key: AccessKey?
        var region: String
        /// What the last request was signed with.
        var lastKey: AccessKey?
    }
    private let state: Mutex<State>
    /// The server keeps no keys that end with a slash: see `KeyNames.kept`.
    let usesKeepers = Atomic(false)

    package init(
        location: S3Location, credentials: AccessKeySource, trust: ServerTrust = .system,
        timeouts: HTTPTransport.Timeouts = HTTPTransport.Timeouts(), pool: BlockingPool, logger: Logger, clock: any TimeSource
    ) throws(ProviderError) {
        self.location = location
        source = credentials
        self.clock = clock
        self.pool = pool
        let key = location.isAnonymous ? nil : try credentials.accessKey()
        state = Mutex(State(key: key, region: location.signingRegion))
        if key == nil, !location.isAnonymous, let origin = try credentials.temporary.get() {
            // STS of the server that the bucket is on is believed by the same certificate.
            let isSame = origin.server == location.endpoint
            let service = try KeyService(origin: origin, trust: isSame ? trust : .system, pool: pool, clock: clock)
            temporary = TemporaryKeys(logger: logger, clock: clock) { await service.answer() }
        } else {
            temporary = nil
        }
        transport = try HTTPTransport(server: location.endpoint, trust: trust, timeouts: timeouts, connections: 32)
    }

    /// Requests say the hash of what they carry, and servers refuse another content.
    var signsContent: Bool { location.signsPayload && !location.isAnonymous }

    /// Parts of large content carry a checksum, as nothing else would show that they changed on the way.
    var checksParts: Bool { !signsContent && !location.isLoopback }

    var executor: LoopExecutor { transport.executor }

    // MARK: Requests

    /// Sends a request whose reply is short, and reads it whole. Throws on every status that is no success; `what` is what is
    /// tried, as the beginning of a sentence.
    package func succeed(_ request: S3Request, _ what: String) async throws(ProviderError) -> HTTPReply {
        let reply = try await exchange(request)
        guard reply.isSuccess else { throw refusal(reply).error(what) }
        return reply
    }

    /// Why the server refused, with what can be done about it here.
    package func refusal(_ reply: HTTPReply) -> S3Refusal {
        var result = S3Refusal(reply)
        let (key, isTemporary) = state.withLock { ($0.lastKey, $0.key == nil) }
        result.keyRemedy = source.remedy(for: key, isTemporary: isTemporary)
        return result
    }

    package func exchange(_ request: S3Request) async throws(ProviderError) -> HTTPReply {
        var attempt = 1
        while true {
            let outcome: Result<HTTPReply, ProviderError>
            do throws(ProviderError) {
                outcome = .success(try await transport.whole(try await open(request), request.method))
            } catch {
                outcome = .failure(error)
            }
            guard S3Client.mayRepeat(request, after: outcome), attempt < S3Client.attemptsMax,
                let pause = S3Client.pause(after: outcome, attempt)
            else {
                let reply = try outcome.get()
                guard request.isRead || !S3Client.isPage(reply) else { throw stranger(request) }
                return reply
            }
            attempt += 1
            do { try await Task.sleep(for: pause) } catch { throw ProviderError(.cancelled, "the call was cancelled") }
        }
    }

    /// The login page of a guest network answers everything with 200, often with a tag. Servers of buckets answer what is to
    /// change something with XML, or nothing.
    private static func isPage(_ reply: HTTPReply) -> Bool {
        guard reply.isSuccess, !reply.body.isEmpty,
            reply.header("Content-Type")?.lowercased().hasPrefix("text/html") == true
        else { return false }
        // No such answer is as long.
        guard reply.body.count <= S3Refusal.byteCountMax else { return true }
        return S3Document.parse(reply.body).map { $0.name.lowercased() == "html" } ?? true
    }

    private func stranger(_ request: S3Request) -> ProviderError {
        ProviderError(
            .retry, "\(location.origin) says that \(request.method.rawValue) is done, with a page: is there a login page?")
    }

    private static func mayRepeat(_ request: S3Request, after outcome: Result<HTTPReply, ProviderError>) -> Bool {
        if request.isRepeatable { return true }
        guard request.isRepeatableIfRefused, case .success(let reply) = outcome else { return false }
        return reply.status == 503 || reply.status == 429
    }

    /// Nil when there is nothing to repeat, or not so soon.
    private static func pause(after outcome: Result<HTTPReply, ProviderError>, _ attempt: Int) -> Duration? {
        switch outcome {
        case .success(let reply):
            guard !reply.isSuccess else { return nil }
            let refusal = S3Refusal(reply)
            guard refusal.isPassing else { return nil }
            if let asked = refusal.pause { return asked <= pauseMax ? asked : nil }
        case .failure(let error):
            guard error.code == .retry else { return nil }
        }
        return firstPause * (1 << (attempt - 1)) * Double.random(in: 1...1.5)
    }

    /// Sends a request and returns with the head of its reply; the body is read by the caller.
    package func open(_ request: S3Request) async throws(ProviderError) -> HTTPClientResponse {
        let (fixed, region) = state.withLock { ($0.key, $0.region) }
        var key = fixed
        if key == nil, let temporary { key = try await temporary.key() }
        var response = try await send(request, key, region)
        switch response.status.code {
        case 400, 301, 307, 403:
            // Another region, or a key that has been replaced meanwhile: once more.
            if let fresh = try mended(response, fixed, region) {
                state.withLock { $0 = fresh }
                return try await send(request, fresh.key ?? key, fresh.region)
            }
            guard fixed == nil, let temporary else { return response }
            guard let doubt = try await doubt(&response, request.method, key) else { return response }
            let other = try await temporary.key(after: (key, doubt))
            return other == key ? response : try await send(request, other, region)
        default: return response
        }
    }

    private func mended(
        _ response: HTTPClientResponse, _ key: AccessKey?, _ region: String
    ) throws(ProviderError) -> State? {
        if let told = response.headers.first(name: "x-amz-bucket-region"), told != region, location.region == nil {
            return State(key: key, region: told)
        }
        // AWS says 400 of a session that has ended; what else it says that of is refused once more.
        guard [400, 403].contains(response.status.code), !location.isAnonymous else { return nil }
        guard let fresh = try source.accessKey(), fresh != key else { return nil }
        return State(key: fresh, region: region)
    }

    /// Whether it is the temporary key that the server does not take. Its answer is read for that, and is a whole one then.
    private func doubt(
        _ response: inout HTTPClientResponse, _ method: HTTPMethod, _ key: AccessKey?
    ) async throws(ProviderError) -> KeyRenewal.Doubt? {
        guard [400, 403].contains(response.status.code) else { return nil }
        let reply = try await transport.whole(response, method)
        response.body = .bytes(ByteBuffer(bytes: reply.body))
        if S3Refusal(reply).isOfEndedKey { return .ended }
        // Without a signature, or without words: AWS answers HEAD with 400 when a session has ended.
        return key == nil || (method == .HEAD && reply.status == 400) ? .possible : nil
    }

    /// An address by which anybody reads an object for so long. Asks nobody.
    func link(to object: [UInt8], at now: Timestamp, seconds: Int) async throws(ProviderError) -> String {
        let (fixed, region) = state.withLock { ($0.key, $0.region) }
        var key = fixed
        if key == nil, let temporary { key = try await temporary.key() }
        let path = location.path(written(object))
        // Anybody reads a bucket that is mounted without a key.
        guard let key else { return location.origin + path }
        let query = Signature(key: key, region: region)
            .linkQuery(path: path, host: location.host, time: now, seconds: seconds)
        return "\(location.origin)\(path)?\(query)"
    }

    /// A key as the server has it.
    func written(_ key: [UInt8]) -> [UInt8] { usesKeepers.load(ordering: .relaxed) ? KeyNames.kept(key) : key }

    /// As the signature has it.
    private func payloadHash(_ request: S3Request) async -> String {
        if !location.signsPayload, request.file != nil || request.body != nil { return Signature.unsignedPayload }
        if let file = request.file { return file.hash ?? Signature.unsignedPayload }
        if let hash = request.bodyHash, request.body != nil { return hash }
        let body = request.body ?? ByteBuffer()
        return await pool.run(over: body.readableBytes) { Signature.hash(body) }
    }

    private func send(
        _ request: S3Request, _ key: AccessKey?, _ region: String
    ) async throws(ProviderError) -> HTTPClientResponse {
        let path = location.path(request.key.map(written))
        let text = QueryItem.text(request.query)
        var headers = request.headers
        headers.add(name: "Host", value: location.host)
        state.withLock { $0.lastKey = key }
        if let key {
            let hash = await payloadHash(request)
            let now = clock.now()
            headers.add(name: "X-Amz-Date", value: Signature.timeText(now))
            headers.add(name: "X-Amz-Content-Sha256", value: hash)
            if let token = key.sessionToken { headers.add(name: "X-Amz-Security-Token", value: token.value) }
            let signature = Signature(key: key, region: region).authorization(
                request.method, path: path, query: request.query, headers: headers, payloadHash: hash, time: now,
                keys: signingKeys)
            headers.add(name: "Authorization", value: signature)
        }
        let needsBody = [.PUT, .POST].contains(request.method)
        let body =
            request.file.map { RequestBody.file($0.body) }
            ?? request.body.map { .bytes($0, of: request.source) }
        return try await transport.send(
            request.method, location.origin + path + (text.isEmpty ? "" : "?" + text), headers,
            body: body ?? (needsBody ? .bytes(ByteBuffer()) : nil),
            timeout: needsBody ? S3Client.uploadTimeout : nil, isRepeatable: request.isRepeatable,
            takesLong: request.takesLong, stores: needsBody)
    }
}

extension Signature {
    static func hash(_ payload: ByteBuffer) -> String {
        var hash = SHA256()
        payload.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        return hexadecimalText(hash.finalize())
    }
}
