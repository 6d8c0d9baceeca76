import Foundation
package import PromiseCore
import PromiseHTTP
package import PromiseProvider

/// The collection on a server that a mount shows as its root, and the URLs of what is in it.
package struct WebDAVLocation: Hashable, Sendable {
    /// `http` or `https`.
    let scheme: String
    let host: String
    /// Nil: the scheme's own.
    let port: Int?
    /// The user that the name of the provider mentions; the password is never in it.
    package let user: String?
    /// Percent-encoded, with a slash at both ends.
    let basePath: String
    /// What the storage is called, where the address is only our own way to it; see `ServerRelay`.
    private var alias: String?
    /// What is escaped in names below it.
    package private(set) var escapes: NameEscapes = []

    /// The part of a name before the path: `webdav+http://host:port`.
    private static let schemes = ["webdav+http": "http", "webdav+https": "https"]

    /// Throws `.permanent` with a sentence on what is no `webdav+https://user@host/path`.
    package init(parsing name: String) throws(ProviderError) {
        let form = "write webdav+https://host/path"
        guard let colon = name.firstIndex(of: ":"), let scheme = WebDAVLocation.schemes[String(name[..<colon])] else {
            throw ProviderError(.permanent, "'\(WebDAVLocation.withoutPassword(name))' is not a WebDAV provider: \(form)")
        }
        let shown = WebDAVLocation.withoutPassword(name)
        guard let url = URLComponents(string: scheme + name[colon...]), let host = url.host, !host.isEmpty else {
            throw ProviderError(.permanent, "'\(shown)' names no server: \(form)")
        }
        guard url.password == nil else {
            throw ProviderError(
                .permanent,
                "'\(shown)' has a password in it, which every process can see: put it into the credentials file "
                    + "($XDG_CONFIG_HOME/promisefs/credentials, mode 0600) or into PROMISEFS_PASSWORD")
        }
        guard url.query == nil, url.fragment == nil else {
            throw ProviderError(.permanent, "'\(shown)' has a query or a fragment, which names no folder: \(form)")
        }
        var path = url.percentEncodedPath
        if !path.hasPrefix("/") { path = "/" + path }
        if !path.hasSuffix("/") { path += "/" }
        guard let decoded = PercentEncoding.decoded(path), String(validating: decoded, as: UTF8.self) != nil,
            !path.split(separator: "/").contains(where: { $0 == ".." || $0 == "." })
        else {
            throw ProviderError(.permanent, "the path in '\(shown)' is not a path in UTF-8: \(form)")
        }
        self.init(scheme: scheme, host: host, port: url.port, user: url.user, basePath: path)
    }

    init(scheme: String, host: String, port: Int?, user: String?, basePath: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.user = user
        // Each name encoded as this module encodes it, so that it is compared bytewise.
        let names = basePath.split(separator: "/").map { PercentEncoding.encoded(PercentEncoding.decoded($0) ?? Array($0.utf8)) }
        self.basePath = names.isEmpty ? "/" : "/" + names.joined(separator: "/") + "/"
    }

    /// Of a server that a relay leads to.
    package init(relayed name: String) {
        self.init(scheme: "http", host: "promisefs", port: nil, user: nil, basePath: "/")
        alias = name
    }

    /// What tells this storage from all others.
    var identity: String { alias ?? origin + basePath }

    /// As the user named it, without secrets.
    package var name: String {
        alias ?? "webdav+\(scheme)://" + (user.map { "\(shown($0))@" } ?? "") + authority + basePath
    }

    /// As it was given, but for what would end a user in a URL.
    private func shown(_ user: String) -> String {
        user.contains { "/:#?".contains($0) } ? PercentEncoding.encoded(Array(user.utf8)) : user
    }

    /// Host and port as they are in a URL.
    var authority: String { (host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "") }

    /// The last folder, percent-encoded, or the host.
    package var lastName: String { basePath.split(separator: "/").last.map(String.init) ?? host }

    /// What entries of the credentials file may call the server, best first.
    package var hostNames: [String] { port == nil ? [host] : [authority, host] }

    package var isEncrypted: Bool { scheme == "https" }

    var origin: String { "\(scheme)://\(authority)" }

    /// Of an item below the root; a folder's ends with a slash.
    package func url(_ path: [FileName], isFolder: Bool = false) -> String { origin + urlPath(path, isFolder: isFolder) }

    package func urlPath(_ path: [FileName], isFolder: Bool = false) -> String {
        basePath + wireNames(path).joined(separator: "/") + (isFolder && !path.isEmpty ? "/" : "")
    }

    /// The same place, with these escapes in names.
    package func escaping(_ escapes: NameEscapes) -> WebDAVLocation {
        var result = self
        result.escapes = escapes
        return result
    }

    /// Percent-encoded.
    private func wireNames(_ path: [FileName]) -> [String] {
        let escapes = escapes(below: path.first?.bytes)
        return path.map { PercentEncoding.encoded(StoredName.encoded($0.bytes, escapes)) }
    }

    /// Our own folder is where it was before it was known what has to be escaped.
    private func escapes(below first: [UInt8]?) -> NameEscapes { first == ReservedName.folder.bytes ? [] : escapes }

    /// As the server keeps it.
    func wireName(_ name: FileName) -> [UInt8] { StoredName.encoded(name.bytes, escapes) }

    /// Where ownCloud and Nextcloud take parts of what goes to `…/dav/files/USER/`; nil for another address, with a slash at
    /// the end.
    package var chunkURL: String? { userPlace.map { "\($0.dav)/uploads/\($0.user)/" } }

    /// Of an address `…/dav/files/USER/`, as ownCloud and Nextcloud have: where `dav` is, without a slash at the end, and whose
    /// files they are; nil for another one.
    var userPlace: (dav: String, user: String)? {
        let names = basePath.split(separator: "/")
        guard let files = names.indices.first(where: { names[$0...].starts(with: ["dav", "files"]) }).map({ $0 + 1 }),
            files + 1 < names.count
        else { return nil }
        return (origin + "/" + names[..<files].joined(separator: "/"), String(names[files + 1]))
    }

    /// Where Nextcloud makes a picture of what is at `…/remote.php/dav/files/USER/` or `…/remote.php/webdav/`, with the beginning
    /// of a query; nil for another address.
    func previewURL(_ path: [FileName]) -> String? {
        let names = basePath.split(separator: "/")
        guard let script = names.firstIndex(of: "remote.php") else { return nil }
        let place = names[(script + 1)...]
        let depth = place.starts(with: ["dav", "files"]) ? 3 : 1
        guard place.first == (depth == 3 ? "dav" : "webdav"), place.count >= depth else { return nil }
        let file = place.dropFirst(depth).map(String.init) + wireNames(path)
        let root = names[..<script].map { "/\($0)" }.joined()
        return "\(origin)\(root)/index.php/core/preview.png?file=/\(file.joined(separator: "/"))"
    }

    /// The root of a Nextcloud or ownCloud server, and which of the user's folders this is; nil for another address. `dav/files/`
    /// is followed by the user.
    var placeOfFiles: (root: String, folder: [FileName])? {
        let names = basePath.split(separator: "/")
        guard let script = names.firstIndex(of: "remote.php") else { return nil }
        let place = names[(script + 1)...]
        let depth = place.starts(with: ["dav", "files"]) ? 3 : 1
        guard place.first == (depth == 3 ? "dav" : "webdav"), place.count >= depth else { return nil }
        let folder = place.dropFirst(depth).compactMap { PercentEncoding.decoded($0).flatMap { FileName($0[...]) } }
        return (origin + names[..<script].map { "/\($0)" }.joined(), folder)
    }

    /// The names from the root that a `href` of a reply (RFC 4918, section 8.3: a URL or an absolute path) stands for.
    package func names(ofReference reference: String) -> ReferencedPlace {
        var text = reference.utf8[...]
        while let last = text.last, last <= UInt8(ascii: " ") { text = text.dropLast() }
        while let first = text.first, first <= UInt8(ascii: " ") { text = text.dropFirst() }
        if text.first != WebDAVLocation.slash {
            guard let authority = reference.range(of: "://"),
                let path = text[authority.upperBound...].firstIndex(of: WebDAVLocation.slash)
            else { return .elsewhere }
            text = text[path...]
        }
        // Servers differ in what they encode, so names are compared decoded, unless they are the same as they are.
        if text.starts(with: basePath.utf8) { return names(text.dropFirst(basePath.utf8.count)) }
        let parts = text.split(separator: WebDAVLocation.slash)
        let base = basePath.utf8.split(separator: WebDAVLocation.slash)
        guard parts.count >= base.count else { return .elsewhere }
        for (part, name) in zip(parts, base)
        where PercentEncoding.decoded(Substring(part)) != PercentEncoding.decoded(Substring(name)) {
            return .elsewhere
        }
        return names(parts.dropFirst(base.count))
    }

    /// A reference that led to these names, and in which commas were escaped twice, is that of those.
    func hasCommasEscapedTwice(_ names: [FileName], of path: [FileName]) -> Bool {
        names.count == path.count
            && zip(names, path).allSatisfy { name, meant in
                let text = String(decoding: wireName(name), as: UTF8.self).replacing("%2C", with: ",")
                return StoredName.decoded(Array(text.utf8), escapes) == meant
            }
    }

    private static let slash = UInt8(ascii: "/")

    private func names(_ path: Substring.UTF8View) -> ReferencedPlace {
        names(path.split(separator: WebDAVLocation.slash))
    }

    private func names(_ parts: some Collection<Substring.UTF8View>) -> ReferencedPlace {
        let escapes = escapes(below: parts.first.flatMap { PercentEncoding.decoded(Substring($0)) })
        var names: [FileName] = []
        for part in parts {
            guard let bytes = PercentEncoding.decoded(Substring(part)), let name = StoredName.decoded(bytes, escapes) else {
                return .unspeakable(String(Substring(part)))
            }
            names.append(name)
        }
        return .names(names)
    }

    package enum ReferencedPlace: Equatable {
        case names([FileName])
        /// Not below the root.
        case elsewhere
        /// A name that cannot be one here, as it came.
        case unspeakable(String)
    }

    /// The name as it may be shown.
    package static func withoutPassword(_ name: String) -> String {
        guard let start = name.range(of: "://")?.upperBound else { return name }
        let authority = name[start...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") else { return name }
        return name[..<colon] + "@" + name[name.index(after: at)...]
    }
}
