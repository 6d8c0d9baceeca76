import AsyncHTTPClient
import Crypto
package import PromiseProvider

// Who the user is, as the header `Authorization` says it.

extension Credentials {
    /// For servers that take the password or token itself (RFC 7617, RFC 6750).
    package var plainAuthorization: String {
        switch self {
        case .password(let user, let password):
            HTTPClient.Authorization.basic(username: user, password: password.value).headerValue
        case .token(let token): HTTPClient.Authorization.bearer(tokens: token.value).headerValue
        }
    }
}

/// What one server is told, and wants to be told: a password in the scheme that it asks for, Basic or Digest (RFC 7616), and
/// never before; a bearer token at once, but for a connection that others can read and change, where it has to ask for that.
/// Over such a one a server that has asked for Digest never gets the password itself: anybody on the way could ask for Basic.
/// Pure.
package struct Authorization: Sendable {
    package let credentials: Credentials?
    private var challenge: DigestChallenge?
    /// Requests that were answered to the challenge.
    private var count: UInt32 = 0
    private var clientNonce = ""
    /// It is known how the server wants it.
    private var isAsked = false
    /// Others can read what is sent.
    private let isOpen: Bool
    /// The server has asked for Digest, also for one that cannot be answered.
    package private(set) var hasAskedForDigest: Bool

    /// `hasAskedForDigest`: it did when an earlier daemon was there.
    package init(_ credentials: Credentials?, isOpen: Bool = false, hasAskedForDigest: Bool = false) {
        (self.credentials, self.isOpen) = (credentials, isOpen)
        self.hasAskedForDigest = hasAskedForDigest
    }

    /// For the same server with other credentials.
    package func renewed(_ credentials: Credentials) -> Authorization {
        Authorization(credentials, isOpen: isOpen, hasAskedForDigest: hasAskedForDigest)
    }

    /// Its next answer may ask to know who the user is.
    package var mayBeAsked: Bool { credentials != nil && (challenge != nil || !mayTellAlready) }

    private var mayTellAlready: Bool {
        if case .token = credentials, !isOpen { return true }
        return isAsked && !(isOpen && hasAskedForDigest)
    }

    /// Nil when there is nothing to tell. `target` is the path with the query, as it is sent.
    package mutating func value(method: String, target: String) -> String? {
        guard let credentials else { return nil }
        guard let challenge, case .password(let user, let password) = credentials else {
            return mayTellAlready ? credentials.plainAuthorization : nil
        }
        count += 1
        return challenge.answer(
            user: user, password: password, method: method, target: target, count: count, clientNonce: clientNonce)
    }

    /// Over TLS, of a server that has answered a request without asking who it is from: it may show
    /// strangers less, or nothing. True once: the request has another chance then.
    package mutating func tellUnasked() -> Bool {
        guard case .password? = credentials, !isOpen, !isAsked, challenge == nil, !hasAskedForDigest
        else { return false }
        isAsked = true
        return true
    }

    /// Takes what a 401 asks for. True when the same request has a chance now. `sent` is what it was sent with; `isFirst`: it was
    /// not sent again yet. `clientNonce`: 64 random bits or more, as text.
    package mutating func learn(_ headers: [String], sent: String?, isFirst: Bool, clientNonce: String) -> Bool {
        let names = headers.flatMap { AuthenticationScheme.parse($0) }.map(\.name)
        if names.contains("digest") { hasAskedForDigest = true }
        guard let credentials else { return false }
        guard case .password = credentials, let best = DigestChallenge.best(in: headers) else {
            guard mayTellPlainly(credentials, names) else { return false }
            isAsked = true
            return sent == nil && isFirst
        }
        isAsked = true
        if let sent, sent.hasPrefix("Digest ") {
            // A nonce lasts for a while; servers say `stale`, or only give another one.
            guard best.isStale || isFirst, !sent.contains("nonce=\"\(best.nonce)\"") else { return false }
        }
        (challenge, count, self.clientNonce) = (best, 0, clientNonce)
        return true
    }
}

extension Authorization {
    private func mayTellPlainly(_ credentials: Credentials, _ schemes: [String]) -> Bool {
        // Over TLS it is told already.
        guard case .password = credentials else { return schemes.contains("bearer") || !isOpen }
        // A proxy in front of the server may not say what it asks for.
        if schemes.isEmpty { return !isOpen && !hasAskedForDigest }
        return schemes.contains("basic") && !(isOpen && hasAskedForDigest)
    }
}

/// What a server asks in `WWW-Authenticate` to see that we know the password (RFC 7616; RFC 2617 and 2069 where it is older).
package struct DigestChallenge: Sendable, Equatable {
    package enum Algorithm: String, Sendable, CaseIterable { case sha256 = "SHA-256", md5 = "MD5" }

    package var realm: String
    package var nonce: String
    var opaque: String?
    package var algorithm: Algorithm
    /// As the server writes the algorithm; nil: it does not.
    var algorithmText: String?
    var isSession: Bool
    /// False where the server knows no quality of protection (RFC 2069).
    var hasQuality: Bool
    var hashesUser: Bool
    package var isStale: Bool

    /// The strongest that can be answered.
    package static func best(in headers: [String]) -> DigestChallenge? {
        let known = headers.flatMap { AuthenticationScheme.parse($0) }.compactMap { DigestChallenge($0) }
        return Algorithm.allCases.lazy.compactMap { algorithm in known.first { $0.algorithm == algorithm } }.first
    }

    init?(_ scheme: AuthenticationScheme) {
        guard scheme.name == "digest", let realm = scheme.values["realm"], let nonce = scheme.values["nonce"] else { return nil }
        (self.realm, self.nonce, opaque) = (realm, nonce, scheme.values["opaque"])
        algorithmText = scheme.values["algorithm"]
        var name = (algorithmText ?? Algorithm.md5.rawValue).uppercased()
        isSession = name.hasSuffix("-SESS")
        if isSession { name = String(name.dropLast("-SESS".count)) }
        guard let algorithm = Algorithm(rawValue: name) else { return nil }
        self.algorithm = algorithm
        let qualities = (scheme.values["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " }
        hasQuality = qualities.contains("auth")
        // Whoever wants the body hashed before it is sent is not answered.
        guard hasQuality || qualities.isEmpty else { return nil }
        hashesUser = scheme.values["userhash"]?.lowercased() == "true"
        isStale = scheme.values["stale"]?.lowercased() == "true"
    }

    /// The value of `Authorization`.
    package func answer(
        user: String, password: Secret, method: String, target: String, count: UInt32, clientNonce: String
    ) -> String {
        let number = String(count, radix: 16)
        let countText = String(repeating: "0", count: 8 - number.count) + number
        var secret = hash("\(user):\(realm):\(password.value)")
        if isSession { secret = hash("\(secret):\(nonce):\(clientNonce)") }
        let request = hash("\(method):\(target)")
        let middle = hasQuality ? "\(nonce):\(countText):\(clientNonce):auth" : nonce
        var parts = ["username=\(quoted(hashesUser ? hash("\(user):\(realm)") : user))"]
        // What is no ASCII has a form of its own.
        if !hashesUser, !user.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) {
            parts = ["username*=UTF-8''\(PercentEncoding.encoded(Array(user.utf8)))"]
        }
        parts += ["realm=\(quoted(realm))", "nonce=\(quoted(nonce))", "uri=\(quoted(target))"]
        parts.append("response=\"\(hash("\(secret):\(middle):\(request)"))\"")
        if let algorithmText { parts.append("algorithm=\(algorithmText)") }
        if let opaque { parts.append("opaque=\(quoted(opaque))") }
        if hasQuality || isSession { parts.append("cnonce=\"\(clientNonce)\"") }
        if hasQuality { parts += ["qop=auth", "nc=\(countText)"] }
        if hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    private func hash(_ text: String) -> String {
        switch algorithm {
        case .md5: hexadecimalText(Insecure.MD5.hash(data: Array(text.utf8)))
        case .sha256: hexadecimalText(SHA256.hash(data: Array(text.utf8)))
        }
    }
}

/// One scheme of `WWW-Authenticate` (RFC 9110, section 11.6.1) with its parameters; a header may hold several.
package struct AuthenticationScheme: Sendable, Equatable {
    /// In small letters, as the names of its parameters.
    package var name: String
    package var values: [String: String] = [:]

    package static func parse(_ header: String) -> [AuthenticationScheme] {
        var result: [AuthenticationScheme] = []
        var rest = header[...]
        while true {
            rest = rest.drop { $0 == "," || $0.isWhitespace }
            guard !rest.isEmpty else { return result }
            let word = rest.prefix { $0 != "=" && $0 != "," && !$0.isWhitespace }
            rest = rest.dropFirst(word.count)
            let after = rest.drop { $0.isWhitespace }
            guard after.first == "=" else {
                result.append(AuthenticationScheme(name: word.lowercased()))
                continue
            }
            rest = after.dropFirst().drop { $0.isWhitespace }
            let value = takeValue(&rest)
            if !result.isEmpty { result[result.count - 1].values[word.lowercased()] = value }
        }
    }

    /// A word, or text in quotes.
    private static func takeValue(_ rest: inout Substring) -> String {
        guard rest.first == "\"" else {
            let word = rest.prefix { $0 != "," && !$0.isWhitespace }
            rest = rest.dropFirst(word.count)
            return String(word)
        }
        rest = rest.dropFirst()
        var value = ""
        while let next = rest.popFirst(), next != "\"" {
            if next == "\\", let escaped = rest.popFirst() { value.append(escaped) } else { value.append(next) }
        }
        return value
    }
}
