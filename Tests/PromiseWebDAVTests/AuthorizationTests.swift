import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// How requests say who sends them: the examples of the standards, and servers that ask in their own ways.
struct AuthorizationTests {
    private let file = ItemReference(identifier: ItemIdentifier("/file"), path: [FileName("file")!])

    private func answer(
        _ header: String, user: String = "Mufasa", password: String, target: String = "/dir/index.html", clientNonce: String
    ) -> String? {
        DigestChallenge.best(in: [header])?.answer(
            user: user, password: Secret(password), method: "GET", target: target, count: 1, clientNonce: clientNonce)
    }

    /// RFC 7616, section 3.9.1, and RFC 2617, section 3.5.
    @Test(arguments: [("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")])
    func theExamplesOfTheStandardAreAnswered(algorithm: String, response: String) {
        let header = """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """
        let found = answer(
            header, password: "Circle of Life", clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(found?.contains("response=\"\(response)\"") == true)
        #expect(found?.contains("qop=auth, nc=00000001") == true && found?.contains("algorithm=\(algorithm),") == true)
        let old = """
            Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
            opaque="5ccc069c403ebaf9f0171e9517f40e41"
            """
        let older = answer(old, password: "Circle Of Life", clientNonce: "0a4f113b")
        #expect(older?.contains("response=\"6629fae49393a05397450978507c4ef1\"") == true)
        #expect(older?.contains("algorithm") == false)
    }

    @Test func severalSchemesInOneHeaderAreToldApart() {
        let header = "Negotiate abc==, Basic realm=\"a, \\\"b\\\"\", Digest realm=x , nonce=\"n\",stale=TRUE, Bearer"
        let found = AuthenticationScheme.parse(header)
        #expect(found.map(\.name) == ["negotiate", "basic", "digest", "bearer"])
        #expect(found.first { $0.name == "basic" }?.values["realm"] == "a, \"b\"")
        #expect(found.first { $0.name == "digest" }?.values == ["realm": "x", "nonce": "n", "stale": "TRUE"])
    }

    @Test func theStrongestThatCanBeAnsweredIsTaken() {
        func header(_ algorithm: String, _ quality: String = "auth") -> String {
            "Digest realm=\"r\", nonce=\"\(algorithm)\", algorithm=\(algorithm), qop=\"\(quality)\""
        }
        let best = { DigestChallenge.best(in: $0)?.nonce }
        #expect(best([header("MD5"), header("SHA-256")]) == "SHA-256")
        #expect(best([header("MD5") + ", " + header("SHA-256-sess")]) == "SHA-256-sess")
        #expect(best([header("MD5"), header("SHA-512-256"), header("SHA-256", "auth-int")]) == "MD5")
        #expect(best([header("SHA-512-256"), "Basic realm=\"r\""]) == nil)
    }

    @Test func aNameThatIsNoASCIIHasAFormOfItsOwn() {
        let header = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
        #expect(answer(header, user: "Jäsøn \"Doe\"", password: "p", clientNonce: "c")?.contains(
            "username*=UTF-8''J%C3%A4s%C3%B8n%20%22Doe%22,") == true)
        #expect(answer(header, user: "a\\\"b", password: "p", clientNonce: "c")?.contains("username=\"a\\\\\\\"b\"") == true)
        let hashed = answer(header + ", userhash=true", user: "é", password: "p", clientNonce: "c")
        #expect(hashed?.contains("é") == false && hashed?.contains("userhash=true") == true)
    }

    // MARK: Servers

    /// A server that asks for Digest, with a nonce for so many requests each. The password that it knows is `p`.
    private func withDigestServer(
        password: String = "p", lifetime: UInt32 = .max, _ body: (WebDAVProvider, ScriptedServer) async throws -> Void
    ) async throws {
        let nonces = Counter()
        let script: ScriptedServer.Script = { request in
            let nonce = "nonce\(nonces.value)"
            let challenge = DigestChallenge.best(in: ["Digest realm=\"r\", qop=\"auth\", nonce=\"\(nonce)\""])
            let count = number(in: request.head)
            if let count, let challenge, count <= lifetime,
                let clientNonce = request.head.split(separator: "cnonce=\"").dropFirst().first?.prefix(while: { $0 != "\"" })
            {
                let right = challenge.answer(
                    user: "u", password: Secret("p"), method: request.method, target: request.path, count: count,
                    clientNonce: String(clientNonce))
                if request.head.contains(right) {
                    return request.method == "OPTIONS" ? reply("200 OK") : listing("/file")
                }
            }
            let isStale = count.map { $0 > lifetime } ?? false
            if isStale { nonces.increment() }
            let next = "Digest realm=\"r\", qop=\"auth\", nonce=\"nonce\(nonces.value)\"" + (isStale ? ", stale=true" : "")
            return reply("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\"", "WWW-Authenticate: \(next)"])
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let location = try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/")
        let provider = try WebDAVProvider(
            location: location, credentials: CredentialSource(given: .password(user: "u", Secret(password))), stateFolder: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await body(provider, server)
    }

    @Test func aServerThatAsksForDigestGetsItFromThenOn() async throws {
        try await withDigestServer { provider, server in
            // What asks first goes without a password, as others can read it.
            _ = try? await provider.connect()
            for _ in 0..<3 { _ = try await provider.item(for: file) }
            #expect(!server.requests.contains { $0.contains("Basic") })
            #expect(server.requests.count { !$0.contains("Authorization") } == 1)
            #expect(server.requests.compactMap { number(in: $0) } == Array(1...UInt32(server.requests.count - 1)))
        }
    }

    @Test func aNonceThatIsTooOldIsReplaced() async throws {
        try await withDigestServer(lifetime: 2) { provider, server in
            for _ in 0..<5 {
                let found = try await provider.item(for: file).size
                #expect(found == 4)
            }
            #expect(server.requests.contains { $0.contains("nonce2") })
        }
    }

    /// Over plain HTTP anybody on the way can ask for the password itself.
    @Test func aServerThatAskedForDigestNeverGetsThePasswordItself() {
        let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
        let basic = "Basic realm=\"r\""
        let credentials = Credentials.password(user: "u", Secret("p"))
        func told(_ challenges: [String], isOpen: Bool, then fresh: Credentials? = nil) -> String? {
            var authorization = Authorization(credentials, isOpen: isOpen)
            for challenge in challenges {
                let sent = authorization.value(method: "GET", target: "/")
                _ = authorization.learn([challenge], sent: sent, isFirst: true, clientNonce: "c")
            }
            if let fresh {
                authorization = authorization.renewed(fresh)
                _ = authorization.learn([basic], sent: nil, isFirst: true, clientNonce: "c")
            }
            return authorization.value(method: "GET", target: "/")
        }
        let unknown = "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256"
        #expect(told([], isOpen: true) == nil, "nobody has asked for it")
        #expect(told([basic], isOpen: true)?.hasPrefix("Basic ") == true)
        #expect(told(["Negotiate"], isOpen: true) == nil)
        #expect(told([digest, basic], isOpen: true)?.hasPrefix("Digest ") == true)
        #expect(told([unknown + ", " + basic], isOpen: true) == nil)
        #expect(told([basic, unknown], isOpen: true) == nil)
        #expect(told([digest], isOpen: true, then: .password(user: "u", Secret("q"))) == nil)
        #expect(told([digest, basic], isOpen: false)?.hasPrefix("Digest ") == true)
        #expect(told([unknown, basic], isOpen: false)?.hasPrefix("Basic ") == true)
    }

    /// Over TLS the password went with the first request, also to a server that wants Digest, and
    /// a token went to who asks for a password.
    @Test func nothingIsToldBeforeTheServerAsksForIt() {
        let basic = "Basic realm=\"r\""
        func told(_ credentials: Credentials, _ challenge: String?, isOpen: Bool) -> String? {
            var authorization = Authorization(credentials, isOpen: isOpen)
            let sent = authorization.value(method: "GET", target: "/")
            if let challenge {
                _ = authorization.learn([challenge], sent: sent, isFirst: true, clientNonce: "c")
            }
            return authorization.value(method: "GET", target: "/")
        }
        let password = Credentials.password(user: "u", Secret("p"))
        for isOpen in [false, true] {
            #expect(told(password, nil, isOpen: isOpen) == nil)
            #expect(told(password, "Negotiate", isOpen: isOpen) == nil)
            #expect(told(password, basic, isOpen: isOpen)?.hasPrefix("Basic ") == true)
        }
        // Over TLS, where a proxy does not say what it asks for, and where nobody asks.
        #expect(told(password, "", isOpen: false)?.hasPrefix("Basic ") == true)
        #expect(told(password, "", isOpen: true) == nil)
        for isOpen in [false, true] {
            var authorization = Authorization(password, isOpen: isOpen)
            #expect(authorization.tellUnasked() != isOpen && !authorization.tellUnasked())
            #expect((authorization.value(method: "GET", target: "/") == nil) == isOpen)
        }
        let token = Credentials.token(Secret("t"))
        #expect(told(token, nil, isOpen: true) == nil)
        #expect(told(token, basic, isOpen: true) == nil)
        #expect(told(token, "Bearer", isOpen: true)?.hasPrefix("Bearer ") == true)
        #expect(told(token, nil, isOpen: false)?.hasPrefix("Bearer ") == true)
    }

    /// A daemon that was started anew had forgotten it.
    @Test func aServerThatAskedForDigestNeverGetsThePasswordItselfLaterEither() async throws {
        let state = try TemporaryFolder("digest-memory")
        let challenges = Mutex("Digest realm=\"r\", qop=\"auth\", nonce=\"n\"")
        let server = ScriptedServer { _ in
            reply("401 Unauthorized", ["WWW-Authenticate: \(challenges.withLock { $0 })"])
        }
        defer { server.stop() }
        for _ in 0..<2 {
            let provider = try WebDAVProvider(
                location: try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/"),
                credentials: CredentialSource(given: .password(user: "u", Secret("p"))), stateFolder: state.path,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            _ = try? await provider.item(for: file)
            challenges.withLock { $0 = "Basic realm=\"r\"" }
        }
        #expect(server.requests.count == 3)
        #expect(!server.requests.contains { $0.contains("Basic") })
    }

    @Test func aWrongPasswordIsTriedOnceWithEachScheme() async throws {
        try await withDigestServer(password: "wrong") { provider, server in
            await #expect { _ = try await provider.item(for: file) } throws: { error in
                (error as? ProviderError)?.code == .authenticate && !"\(error)".contains("wrong\"")
            }
            #expect(server.requests.count == 2)
        }
    }
}

/// The count in a request's `Authorization`.
private func number(in head: String) -> UInt32? {
    head.split(separator: "nc=").dropFirst().first.flatMap { UInt32($0.prefix(8), radix: 16) }
}

final class Counter: Sendable {
    private let state = Mutex(0)
    var value: Int { state.withLock { $0 } }
    func increment() { state.withLock { $0 += 1 } }
}
