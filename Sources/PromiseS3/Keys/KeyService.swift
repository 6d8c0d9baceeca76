import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
package import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem

/// Asks the service of a `KeyOrigin` for an access key, once. What is sent and what comes is in no message.
package final class KeyService: Sendable {
    package enum Answer: Sendable {
        /// `end` nil: never.
        case key(AccessKey, end: Timestamp?)
        /// Nobody gives keys there: this is no machine of AWS, or it has no role.
        case absent
        /// `isFinal`: the service refused; otherwise it may answer in a moment.
        case failed(ProviderError, isFinal: Bool)
    }

    /// Why there is no answer that holds a key.
    private enum Problem: Error {
        case absent
        case passing(String)
        case final(String)
    }

    private static let replyByteCountMax = 65_536

    let origin: KeyOrigin
    private let transport: HTTPTransport
    private let timeout: Duration
    private let pool: BlockingPool

    /// Throws a sentence when the certificates to trust cannot be read. Files are read on `pool`.
    package init(
        origin: KeyOrigin, trust: ServerTrust = .system, pool: BlockingPool, clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        self.origin = origin
        self.pool = pool
        var timeouts = HTTPTransport.Timeouts()
        if case .instance = origin {
            // Where there is none, nothing says so.
            timeouts.connect = .seconds(1)
            timeout = .seconds(3)
        } else {
            timeouts.connect = .seconds(5)
            timeout = .seconds(15)
        }
        timeouts.idle = timeout
        transport = try HTTPTransport(server: origin.server, trust: trust, timeouts: timeouts, connections: 1, clock: clock)
    }

    package func answer() async -> Answer {
        do throws(Problem) {
            let reply: KeyReply
            switch origin {
            case .webIdentity(_, let file, let role, let session): reply = try await identified(file, role, session)
            case .container(_, let target, let token): reply = try await ofContainer(target, token)
            case .instance: reply = try await ofInstance()
            }
            guard let key = reply.key else {
                throw .passing("answers" + (reply.code.map { KeyService.word($0) } ?? " without a key"))
            }
            return .key(key, end: reply.end)
        } catch {
            switch error {
            case .absent: return .absent
            case .passing(let reason): return .failed(ProviderError(.offline, sentence(reason)), isFinal: false)
            case .final(let reason): return .failed(ProviderError(.authenticate, sentence(reason)), isFinal: true)
            }
        }
    }

    private func sentence(_ reason: String) -> String { "no access key: the service at \(origin.shown) \(reason)" }

    // MARK: The three

    /// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html>; nothing is signed.
    private func identified(_ file: [UInt8], _ role: String, _ session: String) async throws(Problem) -> KeyReply {
        let token = try await contents(of: file, "AWS_WEB_IDENTITY_TOKEN_FILE")
        let fields = [
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", role), ("RoleSessionName", session),
            ("WebIdentityToken", token),
        ]
        let body = fields.map { "\($0)=\(PercentEncoding.encoded(Array($1.utf8)))" }.joined(separator: "&")
        let headers: HTTPHeaders = ["Content-Type": "application/x-www-form-urlencoded"]
        let reply = try await exchange(.POST, "/", headers, ByteBuffer(string: body))
        let document = KeyReply(xml: reply.body)
        guard reply.isSuccess else { throw KeyService.problem(reply.status, document?.code) }
        return try understood(document)
    }

    /// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>
    private func ofContainer(_ target: String, _ token: KeyOrigin.ContainerToken?) async throws(Problem) -> KeyReply {
        var headers: HTTPHeaders = ["Accept": "application/json"]
        switch token {
        case .file(let path):
            headers.add(name: "Authorization", value: try await contents(of: path, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
        case .given(let secret):
            guard KeyService.isHeaderValue(secret.value) else {
                throw .final("cannot be asked: AWS_CONTAINER_AUTHORIZATION_TOKEN is more than one line")
            }
            headers.add(name: "Authorization", value: secret.value)
        case nil: break
        }
        let reply = try await exchange(.GET, target, headers)
        let document = KeyReply(json: reply.body)
        guard reply.isSuccess else { throw KeyService.problem(reply.status, document?.code) }
        return try understood(document)
    }

    /// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>. Only with a token, which no
    /// request that somebody makes another program send can have.
    private func ofInstance() async throws(Problem) -> KeyReply {
        let path = "/latest/meta-data/iam/security-credentials/"
        let opened: HTTPReply
        do throws(Problem) {
            opened = try await exchange(.PUT, "/latest/api/token", ["X-aws-ec2-metadata-token-ttl-seconds": "300"])
        } catch {
            // Most machines have nobody at that address. One that had is trouble: the caller knows.
            if case .passing = error { throw .absent }
            throw error
        }
        let token = String(decoding: opened.body, as: UTF8.self)
        guard opened.isSuccess, KeyService.isHeaderValue(token) else {
            if opened.status == 429 || opened.status >= 500 { throw .passing("answers \(opened.status)") }
            throw .absent
        }
        let headers: HTTPHeaders = ["X-aws-ec2-metadata-token": token]
        let roles = try await exchange(.GET, path, headers)
        if roles.status == 404 { throw .absent }
        guard roles.isSuccess else { throw .passing("answers \(roles.status)") }
        let names = String(decoding: roles.body, as: UTF8.self).split(whereSeparator: \.isNewline)
        guard let role = names.first else { throw .absent }
        let reply = try await exchange(.GET, path + PercentEncoding.encoded(Array(role.utf8)), headers)
        guard reply.isSuccess else { throw .passing("answers \(reply.status)") }
        return try understood(KeyReply(json: reply.body))
    }

    // MARK: What they have in common

    private func exchange(
        _ method: HTTPMethod, _ target: String, _ headers: HTTPHeaders, _ body: ByteBuffer? = nil
    ) async throws(Problem) -> HTTPReply {
        do throws(ProviderError) {
            let content = body ?? (method == .PUT ? ByteBuffer() : nil)
            let response = try await transport.send(
                method, origin.server + target, headers, body: content.map { .bytes($0) }, timeout: timeout, isRepeatable: true,
                takesLong: false)
            var data = Data()
            try await transport.read(response, method) { (part) throws(ProviderError) in
                data.append(contentsOf: part.readableBytesView)
                return data.count <= KeyService.replyByteCountMax
            }
            return HTTPReply(status: Int(response.status.code), headers: response.headers, body: data)
        } catch {
            if error.code == .authenticate || error.code == .permanent { throw .final("is not trusted: \(error.message)") }
            throw .passing("does not answer: \(error.message)")
        }
    }

    private func understood(_ reply: KeyReply?) throws(Problem) -> KeyReply {
        guard let reply else { throw .passing("gives an answer that is none") }
        return reply
    }

    private static func problem(_ status: Int, _ code: String?) -> Problem {
        let word = code.map { self.word($0) } ?? ""
        let isBusy = ["IDPCommunicationError", "Throttling", "RequestLimitExceeded"].contains(code)
        guard isBusy || status == 429 || status >= 500 else { return .final("refuses: \(status)\(word)") }
        return .passing("answers \(status)\(word)")
    }

    /// A code is a word; what is none may be anything.
    private static func word(_ code: String) -> String {
        code.utf8.count < 80 && code.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? " \(code)" : ""
    }

    private func contents(of file: [UInt8], _ variable: String) async throws(Problem) -> String {
        let bytes = await pool.run { readSmallFile(file) }
        guard let bytes, let text = String(validating: bytes, as: UTF8.self) else {
            throw .passing("is not asked: the file that \(variable) names cannot be read")
        }
        let token = String(text.reversed().drop { $0.isWhitespace }.reversed())
        guard KeyService.isHeaderValue(token) else {
            throw .passing("is not asked: the file that \(variable) names does not hold one line")
        }
        return token
    }

    private static func isHeaderValue(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
    }
}
