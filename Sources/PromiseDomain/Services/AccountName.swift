import Logging
import PromiseCore
import PromiseProvider
import PromiseWebDAV
import Synchronization

/// Whose a domain is: the storage's root, and who logs in there. The credentials file may name another user at any time.
///
/// **Threads.** Any; looking may read that file.
final class AccountName: Sendable {
    private static let freshness = Duration.seconds(1)

    private let root: ItemIdentifier
    /// Nil where nobody logs in, or not by a name.
    private let source: CredentialSource?
    private let known = Mutex<(text: String, until: ContinuousClock.Instant)?>(nil)

    init(_ root: ItemIdentifier, _ configuration: DomainConfiguration) {
        self.root = root
        let choice = ProviderChoice(
            name: configuration.provider, domain: configuration.name, login: configuration.login,
            credentialsFile: configuration.credentialsFile, logger: Logger(label: "account"))
        source = choice.login(of: configuration.provider)
    }

    /// `USER@ROOT`, or the root alone where no user is known.
    var text: String {
        let now = ContinuousClock.now
        if let known = known.withLock({ $0 }), known.until > now { return known.text }
        var text = root.rawValue
        do throws(ProviderError) {
            if case .password(let user, _)? = try source?.credentials() { text = "\(user)@\(text)" }
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
    /// Where the name of the user at a provider is looked for; nil where there is none.
    fileprivate func login(of name: String) -> CredentialSource? {
        switch name.prefix(while: { $0 != ":" }) {
        case "webdav+http", "webdav+https":
            guard let location = try? WebDAVLocation(parsing: name) else { return nil }
            return credentials(location.hostNames, user: location.user)
        case "extension", "extension+exec": return credentials([], user: nil)
        default: return nil
        }
    }
}
