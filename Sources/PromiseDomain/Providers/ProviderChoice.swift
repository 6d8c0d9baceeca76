import Logging
import PromiseCore
import PromiseExtension
import PromiseFolder
import PromiseHTTP
import PromiseProvider
import PromiseRclone
import PromiseS3
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
    /// What a server over TLS is known by, as `ServerTrust` reads it; nil: the system's authorities.
    var certificate: String?
    var logger: Logger
    /// What the Secret Service keeps of the domain is for this provider. Else the entry that says so
    /// is passed over, and those of hosts are taken.
    var hasKeptLogin = true
    /// What the domain knows of the provider's items.
    var knownPlaces = KnownPlaces()

    func make() throws(Domain.StartFailure) -> any Provider {
        let provider: any Provider
        do throws(ProviderError) {
            switch name.prefix(while: { $0 != ":" }) {
            case "folder":
                _ = try trust(isEncrypted: false)
                provider = FolderProvider(
                    path: try FolderProvider.parse(name), stateFolder: stateFolder, knownPlaces: knownPlaces,
                    logger: logger)
            case "webdav+http", "webdav+https":
                let location = try WebDAVLocation(parsing: name)
                provider = try WebDAVProvider(
                    location: location, credentials: credentials(location.hostNames, user: location.user),
                    stateFolder: stateFolder, mayProbe: mayProbe, trust: try trust(isEncrypted: location.isEncrypted),
                    logger: logger)
            case "s3":
                let location = try S3Location(parsing: name)
                provider = try S3Provider(
                    location: location, credentials: accessKeys(location),
                    stateFolder: stateFolder, mayProbe: mayProbe, trust: try trust(isEncrypted: location.isEncrypted),
                    logger: logger)
            case "extension", "extension+exec":
                _ = try trust(isEncrypted: false)
                provider = try ExtensionProvider(
                    location: try ExtensionLocation(parsing: name), credentials: credentials([], user: nil),
                    stateFolder: stateFolder, logger: logger)
            case "rclone":
                _ = try trust(isEncrypted: false)
                provider = try RcloneProvider(
                    location: try RcloneLocation(parsing: name), stateFolder: stateFolder, mayProbe: mayProbe, logger: logger)
            default:
                throw ProviderError(
                    .permanent,
                    "the provider '\(WebDAVLocation.withoutPassword(name))' is not known: this version knows 'folder:/path', "
                        + "'webdav+https://host/path', 's3://bucket/prefix', 'rclone:remote:path' and 'extension+exec:/path'")
            }
        } catch {
            throw Domain.StartFailure(error.message, exitStatus: 2)
        }
        // A test hook outside the providers' own code: delays, failures and outages that a file describes.
        guard let faults = environment("PROMISEFS_PROVIDER_FAULTS") else { return provider }
        return FaultyProvider(provider, file: Array(faults.utf8))
    }

    /// Throws a sentence on a certificate that cannot be read, or that nobody would look at.
    private func trust(isEncrypted: Bool) throws(ProviderError) -> ServerTrust {
        guard let certificate else { return .system }
        guard isEncrypted else {
            throw ProviderError(.permanent, "--certificate is for servers over https, and '\(name)' is none")
        }
        return try ServerTrust(parsing: certificate)
    }

    func credentials(_ hosts: [String], user: String?) -> CredentialSource {
        let isOwn = hasKeptLogin || !isInSecretService
        let names = (isOwn ? [domain] : []) + hosts
        var source = CredentialSource(file: credentialsFile, names: names, user: user)
        if let login, let password = login.password {
            source.given = (login.user ?? user).map { .password(user: $0, Secret(password)) } ?? .token(Secret(password))
        }
        return source
    }

    /// What the domain's entry of the credentials file says.
    private var isInSecretService: Bool {
        guard let credentialsFile else { return false }
        return CredentialsLook.entries(credentialsFile).contains { $0.name == domain && $0.isInSecretService }
    }

    /// Also where the tools of AWS keep them.
    func accessKeys(_ location: S3Location) -> AccessKeySource {
        var source = AccessKeySource(own: credentials(location.hostNames, user: nil))
        source.given = login?.accessKey.map {
            PromiseS3.AccessKey(
                identifier: $0.identifier, secret: Secret($0.secret), sessionToken: $0.sessionToken.map { Secret($0) })
        }
        let home = environment("HOME").map { $0 + "/.aws/credentials" }
        source.sharedFile = (environment("AWS_SHARED_CREDENTIALS_FILE") ?? home).map { Array($0.utf8) }
        source.profile = environment("AWS_PROFILE") ?? source.profile
        do throws(ProviderError) {
            let token = login?.containerToken.map { Secret($0) }
            source.temporary = .success(try KeyOrigin.find(for: location, containerToken: token, environment: environment))
        } catch {
            source.temporary = .failure(error)
        }
        return source
    }
}

/// Who the user is at the provider, as the environment of a command says it.
package struct Login: Sendable {
    /// What the tools of AWS call it.
    package struct AccessKey: Sendable {
        var identifier: String
        var secret: String
        /// Of temporary credentials.
        var sessionToken: String?

        package init?(identifier: String?, secret: String?, sessionToken: String?) {
            guard let identifier, let secret else { return nil }
            self.identifier = identifier
            self.secret = secret
            self.sessionToken = sessionToken
        }
    }

    /// Nil: as the provider's name says, or the password is a bearer token.
    var user: String?
    var password: String?
    package var accessKey: AccessKey?
    /// For the service that gives containers their access keys.
    package var containerToken: String?

    /// Nil when there is nothing to log in with.
    package init?(user: String?, password: String?, accessKey: AccessKey? = nil, containerToken: String? = nil) {
        guard password != nil || accessKey != nil || containerToken != nil else { return nil }
        self.user = user
        self.password = password
        self.accessKey = accessKey
        self.containerToken = containerToken
    }

    package var hasPassword: Bool { password != nil }

    /// With the user and the password of another one.
    package func with(passwordOf other: Login) -> Login {
        var result = self
        (result.user, result.password) = (other.user, other.password)
        return result
    }
}
