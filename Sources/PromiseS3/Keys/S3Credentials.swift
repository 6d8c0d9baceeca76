import Glibc
import PromiseCore
package import PromiseProvider
import PromiseSystem

// Access keys where the tools of AWS keep them. A user of this program may also put one into its own credentials file, as
// `user` and `password`, or into `PROMISEFS_USER` and `PROMISEFS_PASSWORD`.

/// Where the access key of one domain is looked for, in this order.
package struct AccessKeySource: Sendable {
    /// From `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    package var given: AccessKey?
    /// This program's own: `PROMISEFS_*`, then its credentials file.
    package var own: CredentialSource
    /// Bytes of the path of AWS's credentials file; nil: there is none.
    package var sharedFile: [UInt8]?
    private static let sharedFileByteCountMax = 1 << 20
    /// The section that is taken of it.
    package var profile: String
    /// Who gives keys that end, for when there is none here; a failure is a sentence on variables that cannot be meant, which
    /// matters only then.
    package var temporary: Result<KeyOrigin?, ProviderError>

    package init(
        given: AccessKey? = nil, own: CredentialSource, sharedFile: [UInt8]? = nil, profile: String = "default",
        temporary: Result<KeyOrigin?, ProviderError> = .success(nil)
    ) {
        self.given = given
        self.own = own
        self.sharedFile = sharedFile
        self.profile = profile
        self.temporary = temporary
    }

    /// Nil when there is none: then requests are not signed. Throws `.permanent` with a sentence on a file that cannot be read.
    package func accessKey() throws(ProviderError) -> AccessKey? {
        if let given {
            // A token is for another kind of server.
            guard case .password = own.given else { return given }
        }
        switch try own.credentials() {
        case .password(let user, let password): return AccessKey(identifier: user, secret: password)
        case .token where own.given != nil:
            throw ProviderError(
                .permanent,
                "an S3 server wants an access key, and PROMISEFS_PASSWORD without PROMISEFS_USER is a token: "
                    + "unset it, or set both, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        case .token:
            throw ProviderError(.permanent, "an S3 server wants an access key: set user and password, not a token")
        case nil: break
        }
        guard let sharedFile else { return nil }
        switch TrustedFile.read(sharedFile, countMax: AccessKeySource.sharedFileByteCountMax) {
        case .content(let bytes):
            return String(validating: bytes, as: UTF8.self).flatMap {
                AccessKeySource.key(inSharedFile: $0, profile: profile)
            }
        case .unreadable: return nil
        case .stranger(let hand):
            throw ProviderError(.permanent, "'\(escapedForDisplay(sharedFile))' \(hand)")
        }
    }

    /// What a server's refusal of this key means for the user: where it was found, and where else there is one. `isTemporary`: a
    /// service gave it.
    package func remedy(for key: AccessKey?, isTemporary: Bool = false) -> String {
        guard let key else { return "there is no access key: see AWS_ACCESS_KEY_ID or the credentials file" }
        if case .password(let user, let password)? = own.given, AccessKey(identifier: user, secret: password) == key {
            let other = given == nil ? "" : ", so that AWS_ACCESS_KEY_ID is used"
            return "the access key in PROMISEFS_USER is wrong: if that is for another server, unset PROMISEFS_USER and "
                + "PROMISEFS_PASSWORD\(other)"
        }
        let problem = key.sessionToken == nil ? "is wrong" : "is wrong or has ended"
        if key == given { return "the access key in AWS_ACCESS_KEY_ID \(problem)" }
        if isTemporary, case .success(.some(let origin)) = temporary {
            return "the access key that the service at \(origin.shown) gives \(problem)"
        }
        return "the access key \(problem): see AWS_ACCESS_KEY_ID or the credentials file"
    }

    /// `[profile]`, then `aws_access_key_id = …` and the like; what else is in the file belongs to others.
    package static func key(inSharedFile text: String, profile: String) -> AccessKey? {
        var section = ""
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline).map(trimmed) where !line.hasPrefix("#") && !line.hasPrefix(";") {
            if line.hasPrefix("["), line.hasSuffix("]") {
                section = String(trimmed(line.dropFirst().dropLast()))
            } else if section == profile, let equals = line.firstIndex(of: "=") {
                values[trimmed(line[..<equals]).lowercased()] = String(trimmed(line[line.index(after: equals)...]))
            }
        }
        guard let identifier = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] else { return nil }
        return AccessKey(
            identifier: identifier, secret: Secret(secret), sessionToken: values["aws_session_token"].map { Secret($0) })
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var rest = text
        while rest.first?.isWhitespace == true { rest = rest.dropFirst() }
        while rest.last?.isWhitespace == true { rest = rest.dropLast() }
        return rest
    }
}
