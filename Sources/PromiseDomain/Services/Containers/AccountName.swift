import Logging
import PromiseCore
import PromiseProvider
import PromiseS3
import PromiseWebDAV
import Synchronization

/// Whose a domain is: the storage's root, and who logs in there. The credentials file may name another user at any time.
///
/// **Threads.** Any; looking may read that file.
final class AccountName: Sendable {
    private static let freshness = Duration.seconds(1)

    private let root: ItemIdentifier
    /// Who logs in; nil where nobody does, or not by a name.
    private let user: @Sendable () throws(ProviderError) -> String?
    /// Whoever logs in has the same private objects.
    let sharesObjects: Bool
    private let known = Mutex<(text: String, until: ContinuousClock.Instant)?>(nil)

    init(_ root: ItemIdentifier, _ configuration: DomainConfiguration) {
        self.root = root
        let choice = ProviderChoice(
            name: configuration.provider, domain: configuration.name, login: configuration.login,
            credentialsFile: configuration.credentialsFile, logger: Logger(label: "account"))
        user = choice.user(of: configuration.provider)
        sharesObjects = configuration.provider.hasPrefix("s3:")
    }

    /// `USER@ROOT`, or the root alone where no user is known.
    var text: String {
        let now = ContinuousClock.now
        if let known = known.withLock({ $0 }), known.until > now { return known.text }
        var text = root.rawValue
        do throws(ProviderError) {
            if let user = try user() { text = "\(user)@\(text)" }
        } catch {
            // A file that is being written is nobody else's account.
            if let known = known.withLock({ $0 }) { text = known.text }
        }
        let found = text
        known.withLock { $0 = (found, now + AccountName.freshness) }
        return text
    }
}

extension ProviderChoice {
    /// The name of the user at a provider: of S3 the access key's, but of keys that end, which are
    /// others every hour.
    fileprivate func user(of name: String) -> @Sendable () throws(ProviderError) -> String? {
        let source: CredentialSource
        switch name.prefix(while: { $0 != ":" }) {
        case "webdav+http", "webdav+https":
            guard let location = try? WebDAVLocation(parsing: name) else { return { nil } }
            source = credentials(location.hostNames, user: location.user)
        case "extension", "extension+exec": source = credentials([], user: nil)
        case "s3":
            guard let location = try? S3Location(parsing: name) else { return { nil } }
            let keys = accessKeys(location)
            return { () throws(ProviderError) in
                let key = try keys.accessKey()
                return key?.sessionToken == nil ? key?.identifier : nil
            }
        default: return { nil }
        }
        return { () throws(ProviderError) in
            if case .password(let user, _)? = try source.credentials() { return user }
            return nil
        }
    }
}
