import Glibc
import PromiseSystem

// Who the user is at a storage. Secrets come from a file that only its owner may read, or from the environment; they are in no
// name of a provider, no message and no log.

/// Prints as nothing but the fact that there is one.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package let value: String
    package init(_ value: String) { self.value = value }
    package var description: String { "(secret)" }
    package var debugDescription: String { "(secret)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

package enum Credentials: Sendable, Hashable {
    case password(user: String, Secret)
    /// A bearer token (RFC 6750).
    case token(Secret)
}

/// Where the credentials of one domain are looked for: what the environment said, then the credentials file.
package struct CredentialSource: Sendable {
    /// From the environment; wins over the file.
    package var given: Credentials?
    /// Bytes of the file's path; nil: there is none.
    package var file: [UInt8]?
    /// Entries of the file that are taken, best first: the domain's name, `host:port`, `host`.
    package var names: [String]
    /// The user that the provider's name mentions.
    package var user: String?

    package init(given: Credentials? = nil, file: [UInt8]? = nil, names: [String] = [], user: String? = nil) {
        self.given = given
        self.file = file
        self.names = names
        self.user = user
    }

    /// Nil when there are none. Throws `.permanent` with a sentence when the file is unreadable, open to others or malformed.
    package func credentials() throws(ProviderError) -> Credentials? {
        if let given { return given }
        guard let file, let text = try read(file) else { return nil }
        let entries = try CredentialsFile.parse(text, shown: shown(file))
        for name in names {
            guard let entry = entries[name] else { continue }
            if let token = entry.token { return .token(Secret(token)) }
            guard !entry.isInSecretService else {
                // Whoever starts the provider asks there, and gives what it has got.
                throw ProviderError(.permanent, "\(shown(file)): the password of [\(name)] is in the Secret Service")
            }
            guard let user = entry.user ?? user else {
                throw ProviderError(.permanent, "\(shown(file)): the entry [\(name)] has a password but no 'user = …'")
            }
            if let password = entry.password { return .password(user: user, Secret(password)) }
            throw ProviderError(.permanent, "\(shown(file)): the entry [\(name)] has neither 'password = …' nor 'token = …'")
        }
        return nil
    }

    private func shown(_ file: [UInt8]) -> String { "the credentials file \(String(decoding: file, as: UTF8.self))" }

    private func read(_ path: [UInt8]) throws(ProviderError) -> String? {
        let read: (status: FileStatus, bytes: [UInt8])
        do throws(SystemError) {
            read = try contents(path)
        } catch {
            if error.errno == ENOENT || error.errno == ENOTDIR { return nil }
            throw ProviderError(.permanent, "\(shown(path)) cannot be read: \(error.reason)")
        }
        if let hand = read.status.strangersHand { throw ProviderError(.permanent, "\(shown(path)) \(hand)") }
        guard read.status.permissions & 0o077 == 0 else {
            throw ProviderError(.permanent, "\(shown(path)) can be read by others: run chmod 0600 on it")
        }
        guard read.status.size <= CredentialSource.fileByteCountMax else {
            throw ProviderError(.permanent, "\(shown(path)) is larger than 1 MiB")
        }
        guard let text = String(validating: read.bytes, as: UTF8.self) else {
            throw ProviderError(.permanent, "\(shown(path)) is not UTF-8")
        }
        return text
    }

    private static let fileByteCountMax: UInt64 = 1 << 20

    private func contents(_ path: [UInt8]) throws(SystemError) -> (status: FileStatus, bytes: [UInt8]) {
        // A fifo that nobody writes to would be waited for.
        let file = try Descriptor.open(path, flags: O_RDONLY | O_NONBLOCK, label: "credentials.open")
        let status = try FileStatus.of(descriptor: file.number, label: "credentials.status")
        let byteCount = Int(min(status.size, CredentialSource.fileByteCountMax))
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 1)
        defer { room.deallocate() }
        let count = try readFully(file.number, into: room, at: 0, label: "credentials.read")
        return (status, Array(room.prefix(count)))
    }
}

/// `[NAME]`, then `user = …`, `password = …` or `token = …`, or `secret-service = true`, a line each; `#` begins a comment
/// line. What follows `=` is taken as it is, but for spaces at its ends.
package enum CredentialsFile {
    package struct Known: Sendable, Hashable {
        package var user: String?
        package var password: String?
        package var token: String?
        /// The password is kept by the desktop's own service (org.freedesktop.secrets), not here.
        package var isInSecretService = false
    }

    package static func parse(_ text: String, shown: String) throws(ProviderError) -> [String: Known] {
        var entries: [String: Known] = [:]
        var section: String?
        for (index, line) in lines(text).enumerated() {
            let line = trimmed(line)
            if line.isEmpty || line.hasPrefix("#") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                let name = String(line.dropFirst().dropLast())
                section = name
                entries[name] = entries[name] ?? Known()
                continue
            }
            guard let section, let equals = line.firstIndex(of: "=") else {
                throw ProviderError(.permanent, "\(shown), line \(index + 1): neither [NAME] nor 'key = value'")
            }
            let value = String(trimmed(line[line.index(after: equals)...]))
            switch trimmed(line[..<equals]) {
            case "user": entries[section]?.user = value
            case "password": entries[section]?.password = value
            case "token": entries[section]?.token = value
            case "secret-service": entries[section]?.isInSecretService = value == "true"
            // The line may hold a secret, so it is not shown.
            default:
                let known = "user, password, token, secret-service"
                throw ProviderError(.permanent, "\(shown), line \(index + 1): the key is none of \(known)")
            }
        }
        return entries
    }

    /// Also of a file written on Windows: CR and LF together are one character.
    private static func lines(_ text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var rest = text
        while rest.first?.isWhitespace == true { rest = rest.dropFirst() }
        while rest.last?.isWhitespace == true { rest = rest.dropLast() }
        return rest
    }
}
