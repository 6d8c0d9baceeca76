import Crypto
import Glibc

/// Who may speak to a page's server: the one page that was opened by the one who asked for it.
///
/// The address has a token that is good once; the page changes it for a key, which it sends with
/// all it asks. Neither is ever in an address that a server gets, a cookie, or something that
/// another page can make a browser send. What comes from another user of the machine is told by the
/// kernel.
///
/// A pure machine: what it is given is what a request says of itself.
public struct WebDoor: Sendable {
    public enum Refusal: Sendable, Equatable { case host, origin, site, token, key, method, user }

    /// What of a request matters.
    public struct Knock: Sendable {
        public var method: String
        /// Without the query.
        public var path: String
        public var host: [String]
        public var origin: [String]
        /// `Sec-Fetch-Site` (W3C, Fetch Metadata).
        public var site: [String]
        public var key: [String]
        public var isJSON: Bool

        public init(
            method: String, path: String, host: [String], origin: [String] = [],
            site: [String] = [], key: [String] = [],
            isJSON: Bool = false
        ) {
            self.method = method
            self.path = path
            self.host = host
            self.origin = origin
            self.site = site
            self.key = key
            self.isJSON = isJSON
        }
    }

    public let port: Int
    private var token: [UInt8]?
    private var key: [UInt8]?
    private var guesses = 0

    /// Tokens that may be wrong before none is right any more.
    private static let guessCountMax = 5

    public init(port: Int, token: String) {
        self.port = port
        self.token = Array(token.utf8)
    }

    /// The token was changed for a key.
    public var isEntered: Bool { key != nil }

    /// 43 characters of six bits each.
    public static func secret() -> String {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        let bytes = SymmetricKey(size: SymmetricKeySize(bitCount: 43 * 8)).withUnsafeBytes {
            Array($0)
        }
        return String(decoding: bytes.map { alphabet[Int($0 & 63)] }, as: UTF8.self)
    }

    /// Nil: it may be looked at. The page itself, its style and its script, are no secret.
    public func refusal(of knock: Knock) -> Refusal? {
        // Another name for this address is another site's: DNS rebinding.
        guard knock.host == ["127.0.0.1:\(port)"] else { return .host }
        let here = "http://127.0.0.1:\(port)"
        guard knock.origin.isEmpty || knock.origin == [here] else { return .origin }
        let sites = ["same-origin", "none"]
        guard knock.site.isEmpty || knock.site.count == 1 && sites.contains(knock.site[0]) else {
            return .site
        }
        switch knock.method {
        case "GET":
            if WebDoor.isOpen(knock.path) { return nil }
        case "POST":
            // A form of another page has none of these.
            guard knock.origin == [here], knock.isJSON else { return .origin }
            if knock.path == "/session" { return nil }
        default: return .method
        }
        guard let key, knock.key.count == 1, WebDoor.isEqual(key, Array(knock.key[0].utf8)) else {
            return .key
        }
        return nil
    }

    /// Of what is shown in a frame of the page.
    static let framePrefix = "/frame/"

    private static func isOpen(_ path: String) -> Bool {
        // A frame can send no key: its address is one that was drawn by chance, and is good once.
        path == "/" || path == "/page.css" || path == "/page.js" || path.hasPrefix(framePrefix)
    }

    /// The key for a token, once.
    public mutating func exchange(_ given: String) -> String? {
        guard let token else { return nil }
        guard WebDoor.isEqual(token, Array(given.utf8)) else {
            guesses += 1
            if guesses >= WebDoor.guessCountMax { self.token = nil }
            return nil
        }
        self.token = nil
        let fresh = WebDoor.secret()
        key = Array(fresh.utf8)
        return fresh
    }

    /// In a time that does not tell where they differ.
    private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// The user who has the other end of a connection on loopback, by `/proc/net/tcp`
    /// (proc_net(5)); nil when the table does not say.
    public static func user(ofPeer peerPort: Int, serverPort: Int, table: String) -> UInt32? {
        func hexadecimal(_ port: Int) -> String {
            let digits = String(port, radix: 16, uppercase: true)
            return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
        // 127.0.0.1, as a number of this machine's byte order.
        let address = UInt32(0x7F00_0001).bigEndian
        let digits = String(address, radix: 16, uppercase: true)
        let host = String(repeating: "0", count: 8 - digits.count) + digits
        let (local, remote) = (
            "\(host):\(hexadecimal(peerPort))", "\(host):\(hexadecimal(serverPort))"
        )
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 7, fields[1] == local, fields[2] == remote else { continue }
            return UInt32(fields[7])
        }
        return nil
    }
}
