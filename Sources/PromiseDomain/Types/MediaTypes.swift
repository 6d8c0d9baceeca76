import PromiseCore
import PromiseSystem

/// MIME types of names, and which is a kind of which, as the system's shared-mime-info has them
/// (freedesktop.org, Shared MIME-info Database: `globs2`, `subclasses`). Without it the few that
/// everybody has.
struct MediaTypes: Sendable {
    static let shared = MediaTypes(folder: "/usr/share/mime")

    /// By extension, in lower case, with the most certain one first.
    private let byExtension: [String: [String]]
    private let parents: [String: [String]]

    private static let fewest = """
        50:text/plain:*.txt
        50:text/plain:*.log
        50:text/markdown:*.md
        50:text/html:*.html
        50:text/csv:*.csv
        50:application/json:*.json
        50:application/xml:*.xml
        50:application/pdf:*.pdf
        50:application/zip:*.zip
        50:image/png:*.png
        50:image/jpeg:*.jpg
        50:image/jpeg:*.jpeg
        50:image/gif:*.gif
        50:image/webp:*.webp
        50:image/svg+xml:*.svg
        50:audio/mpeg:*.mp3
        50:audio/flac:*.flac
        50:video/mp4:*.mp4
        50:application/vnd.oasis.opendocument.text:*.odt
        50:application/vnd.oasis.opendocument.spreadsheet:*.ods
        """

    init(folder: String) {
        // A few hundred kilobytes each.
        func lines(_ name: String) -> [Substring] {
            let bytes = readSmallFile(Array("\(folder)/\(name)".utf8), countMax: 4 << 20)
            return String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n")
        }
        let globs = lines("globs2")
        self.init(
            globs: globs.isEmpty ? MediaTypes.fewest.split(separator: "\n") : globs,
            subclasses: lines("subclasses"))
    }

    init(globs: [Substring], subclasses: [Substring]) {
        var byExtension: [String: [String]] = [:]
        for line in globs where !line.hasPrefix("#") {
            // WEIGHT:TYPE:GLOB, the heaviest first.
            let parts = line.split(separator: ":", maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count >= 3, parts[2].hasPrefix("*.") else { continue }
            let suffix = parts[2].dropFirst(2)
            guard !suffix.contains(where: { "*?[".contains($0) }) else { continue }
            byExtension[suffix.lowercased(), default: []].append(String(parts[1]))
        }
        var parents: [String: [String]] = [:]
        for line in subclasses {
            let parts = line.split(separator: " ")
            if parts.count == 2 { parents[String(parts[0]), default: []].append(String(parts[1])) }
        }
        (self.byExtension, self.parents) = (byExtension, parents)
    }

    /// `type` may be `image/*` or `*/*`.
    func conforms(_ name: FileName, to type: String) -> Bool {
        if type == "*/*" || type == "application/octet-stream" { return true }
        return types(of: name).contains { isKind($0, of: type, depth: 0) }
    }

    /// By the longest extension that is known: `a.tar.gz` is `.tar.gz` before it is `.gz`.
    private func types(of name: FileName) -> [String] {
        var rest = String(decoding: name.bytes, as: UTF8.self).lowercased()[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if let known = byExtension[String(rest)] { return known }
        }
        return []
    }

    private func isKind(_ type: String, of other: String, depth: Int) -> Bool {
        if type == other { return true }
        if other.hasSuffix("/*"), type.hasPrefix(other.dropLast()) { return true }
        // Every kind of text is plain text, by the specification.
        if other == "text/plain", type.hasPrefix("text/") { return true }
        guard depth < 10 else { return false }
        return parents[type]?.contains { isKind($0, of: other, depth: depth + 1) } ?? false
    }
}
