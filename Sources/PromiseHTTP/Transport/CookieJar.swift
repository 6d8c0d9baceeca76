import AsyncHTTPClient
package import NIOHTTP1
package import PromiseCore

/// What one server wants to be told again with later requests (RFC 6265). Nextcloud and ownCloud say so by whom they have looked
/// at the password already, which takes them a quarter of a second each time. In memory only. Pure.
///
/// All or nothing: a server that gives one that must not come back gets none. Nextcloud refuses requests that have its session
/// and not the rest.
package struct CookieJar: Sendable {
    private struct Cookie {
        let name: String
        let value: String
        let path: String
        /// Nil: as long as this program runs.
        let end: Timestamp?
    }

    /// What others keep at least (RFC 6265, section 6.1).
    private static let countMax = 50
    private static let byteCountMax = 4096

    private let host: String
    private let isEncrypted: Bool
    private var cookies: [Cookie] = []
    private var isRefused = false

    /// `host` as addresses name it. `isEncrypted`: others cannot read what is sent.
    package init(host: String, isEncrypted: Bool) {
        self.host = host.lowercased()
        self.isEncrypted = isEncrypted
    }

    package mutating func empty() { cookies = [] }

    /// Takes what a reply gives, or takes back.
    package mutating func take(_ headers: HTTPHeaders, at now: Timestamp) {
        for header in headers["Set-Cookie"] {
            // It would be remembered for nothing, and a server may name others without end.
            if isRefused { return cookies = [] }
            guard let found = HTTPClient.Cookie(header: header, defaultDomain: host) else { continue }
            cookies.removeAll { $0.name == found.name && $0.path == found.path }
            let end = found.maxAge.map { now.advanced(by: .seconds(min(max($0, 0), 1 << 31))) } ?? CookieJar.date(in: header)
            if let end, end <= now { continue }
            cookies.append(Cookie(name: found.name, value: found.value, path: found.path, end: end))
            if !mayKeep(found) || cookies.count > CookieJar.countMax { isRefused = true }
        }
        if isRefused { cookies = [] }
    }

    /// How many are remembered.
    package var count: Int { cookies.count }

    /// What a request for a path says, nil when that is nothing.
    package func value(path: String, at now: Timestamp) -> String? {
        guard !isRefused else { return nil }
        let valid = cookies.filter { cookie in cookie.end.map { $0 > now } ?? true && CookieJar.covers(cookie.path, path) }
        guard !valid.isEmpty else { return nil }
        return valid.sorted { $0.path.utf8.count > $1.path.utf8.count }.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    private func mayKeep(_ cookie: HTTPClient.Cookie) -> Bool {
        let domain = cookie.domain ?? host
        let isOurs = host == domain || host.hasSuffix("." + domain)
        let isShort = cookie.name.utf8.count + cookie.value.utf8.count <= CookieJar.byteCountMax
        return isOurs && isShort && (isEncrypted || !cookie.secure)
    }

    /// A folder's covers what is in it (RFC 6265, section 5.1.4).
    private static func covers(_ folder: String, _ path: String) -> Bool {
        guard path.utf8.starts(with: folder.utf8) else { return false }
        return folder.hasSuffix("/") || path.utf8.dropFirst(folder.utf8.count).first.map { $0 == UInt8(ascii: "/") } ?? true
    }

    /// Of `Expires`, in either form: PHP writes `Thu, 01-Jan-1970 00:00:01 GMT`.
    private static func date(in header: String) -> Timestamp? {
        for part in header.split(separator: ";") {
            let words = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            guard words.count == 2, words[0].lowercased() == "expires" else { continue }
            return HTTPDate.timestamp(String(words[1]).replacing("-", with: " "))
        }
        return nil
    }
}
