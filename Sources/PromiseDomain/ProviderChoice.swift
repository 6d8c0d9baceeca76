import Logging
import PromiseCore
import PromiseExtension
import PromiseFolder
import PromiseProvider
import PromiseWebDAV

/// What is needed to make the provider that a name stands for.
struct ProviderChoice {
    /// As on the command line: `folder:/path`.
    var name: String
    var domain: String
    var login: Login?
    /// Bytes of the credentials file's path.
    var credentialsFile: [UInt8]?
    /// Where a provider remembers what it learnt of its server; nil: nowhere.
    var stateFolder: [UInt8]?
    /// The provider may write to its storage to find out what that can do.
    var mayProbe = true
    var logger: Logger

    func make() throws(Domain.StartFailure) -> any Provider {
        let provider: any Provider
        do throws(ProviderError) {
            switch name.prefix(while: { $0 != ":" }) {
            case "folder": provider = FolderProvider(path: try FolderProvider.parse(name), logger: logger)
            case "webdav+http", "webdav+https":
                let location = try WebDAVLocation(parsing: name)
                provider = try WebDAVProvider(
                    location: location, credentials: credentials(location.hostNames, user: location.user),
                    stateFolder: stateFolder, mayProbe: mayProbe, logger: logger)
            case "extension", "extension+exec":
                provider = try ExtensionProvider(
                    location: try ExtensionLocation(parsing: name), credentials: credentials([], user: nil),
                    stateFolder: stateFolder, logger: logger)
            default:
                throw ProviderError(
                    .permanent,
                    "the provider '\(WebDAVLocation.withoutPassword(name))' is not known: this version knows 'folder:/path', "
                        + "'webdav+https://host/path' and 'extension+exec:/path'")
            }
        } catch {
            throw Domain.StartFailure(error.message, exitStatus: 2)
        }
        // A test hook outside the providers' own code: delays, failures and outages that a file describes.
        guard let faults = environment("PROMISEFS_PROVIDER_FAULTS") else { return provider }
        return FaultyProvider(provider, file: Array(faults.utf8))
    }

    private func credentials(_ hosts: [String], user: String?) -> CredentialSource {
        var source = CredentialSource(file: credentialsFile, names: [domain] + hosts, user: user)
        if let login {
            source.given =
                (login.user ?? user).map { .password(user: $0, Secret(login.password)) } ?? .token(Secret(login.password))
        }
        return source
    }
}

/// Who the user is at the provider, as the environment of a command says it.
package struct Login: Sendable {
    /// Nil: as the provider's name says, or the password is a bearer token.
    var user: String?
    var password: String

    package init?(user: String?, password: String?) {
        guard let password else { return nil }
        self.user = user
        self.password = password
    }
}
