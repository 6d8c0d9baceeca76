import PromiseCore

/// What people write to find something, as a predicate. Pure.
enum PlainPredicate {
    private static let keywords: Set<String> = [
        "TRUEPREDICATE", "FALSEPREDICATE", "AND", "OR", "NOT", "LIKE", "CONTAINS", "BEGINSWITH", "ENDSWITH", "MATCHES", "IN",
        "BETWEEN", "SELF", "ANY", "ALL", "NONE",
    ]

    /// `text` is a predicate, or plain words, each of which is in the name; `name` a pattern with `*` and `?`. At least one.
    /// Words and pattern may have bytes that are no text, as `RawArguments` has them.
    static func predicate(_ text: String?, name: String?) -> String {
        var parts: [String] = []
        if let name { parts.append("kMDItemFSName LIKE[c] \(quotedPattern(name))") }
        if let text { parts.append(words(in: text).map(contained) ?? (parts.isEmpty ? text : "(\(text))")) }
        return parts.joined(separator: " AND ")
    }

    static func isWords(_ text: String) -> Bool { words(in: text) != nil }

    private static func contained(_ words: [String]) -> String {
        words.map { "kMDItemFSName CONTAINS[cd] \(quoted($0))" }.joined(separator: " AND ")
    }

    /// Nil when it says more than words do.
    private static func words(in text: String) -> [String]? {
        guard !text.contains(where: { "=<>!\"'(){}[]%&|:,".contains($0) }) else { return nil }
        let words = text.split { $0.isWhitespace }.map(String.init)
        return words.isEmpty || words.contains(where: { keywords.contains($0.uppercased()) }) ? nil : words
    }

    /// The user's own `\` takes the meaning of a `*` away. One by which a byte is shown that is no
    /// text stands for itself.
    private static func quotedPattern(_ pattern: String) -> String {
        let parts = RawArguments.bytes(of: pattern).split(
            separator: UInt8(ascii: "\\"), omittingEmptySubsequences: false)
        let shown = parts.map { escapedForDisplay($0).replacing("\\", with: "\\\\") }
        return inQuotes(shown.joined(separator: "\\"))
    }

    /// As queries show names.
    private static func quoted(_ text: String) -> String {
        inQuotes(escapedForDisplay(RawArguments.bytes(of: text)))
    }

    private static func inQuotes(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
