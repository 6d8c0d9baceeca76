import PromiseWire

/// Percent-encoding (RFC 3986, section 2.1) for one part of a path or of a query, where a slash is encoded, too.
enum PercentText {
    static func encoded(_ bytes: [UInt8]) -> String {
        PercentCoding.encode(bytes).split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
    }

    static func encoded(_ text: String) -> String { encoded(Array(text.utf8)) }

    /// Nil when a `%` is not followed by two digits.
    static func decoded(_ text: some StringProtocol) -> [UInt8]? { PercentCoding.decode(text) }
}
