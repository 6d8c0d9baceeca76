package import PromiseProvider

/// One of a person's remotes, as rclone's configuration calls it, and a folder there: `rclone:REMOTE:PATH`.
package struct RcloneLocation: Hashable, Sendable {
    package let remote: String
    /// Without a slash at its end; one at its beginning means something to some remotes.
    package let path: String

    /// Throws `.permanent` with a sentence on what is no `rclone:REMOTE:PATH`. `remotes`: asked for when none is named.
    package init(
        parsing name: String, remotes: () throws(ProviderError) -> [String] = { () throws(ProviderError) in [] }
    ) throws(ProviderError) {
        let form = "write rclone:REMOTE:PATH"
        let rest = name.dropFirst("rclone:".count)
        guard let colon = rest.firstIndex(of: ":") else {
            throw ProviderError(.permanent, "'\(name)' names no remote: \(form); \(RcloneLocation.sentence(try remotes()))")
        }
        let remote = String(rest[..<colon])
        // rclone takes a whole configuration there, with passwords that every process could see.
        guard !remote.isEmpty, !remote.contains(where: { ",=".contains($0) }) else {
            throw ProviderError(
                .permanent, "'rclone:' takes remotes by the name that they have in rclone's configuration: \(form); "
                    + RcloneLocation.sentence(try remotes()))
        }
        guard RcloneLocation.isName(remote) else {
            throw ProviderError(.permanent, "'\(remote)' is no name that a remote of rclone can have: \(form)")
        }
        let text = rest[rest.index(after: colon)...]
        let parts = text.split(separator: "/")
        guard !parts.contains(where: { $0 == "." || $0 == ".." }), !text.unicodeScalars.contains(where: { $0.value < 32 }) else {
            throw ProviderError(.permanent, "the path in '\(name)' has '.', '..' or a control character in it: \(form)")
        }
        self.remote = remote
        path = (text.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
    }

    /// As rclone is told it.
    package var text: String { "\(remote):\(path)" }
    package var name: String { "rclone:\(text)" }

    /// The last folder, or the remote.
    package var lastName: String { path.split(separator: "/").last.map(String.init) ?? remote }

    /// As rclone has it (fs/fspath): letters, digits and `_ . + @ -` and, inside, spaces; no option begins so.
    private static func isName(_ remote: String) -> Bool {
        remote.allSatisfy { $0.isLetter || $0.isNumber || "_.+@- ".contains($0) } && !remote.hasPrefix("-")
            && !remote.hasPrefix(" ") && !remote.hasSuffix(" ")
    }

    package static func sentence(_ remotes: [String]) -> String {
        remotes.isEmpty
            ? "rclone has no remotes yet: make one by 'rclone config'"
            : "there are \(remotes.prefix(30).map { "\($0):" }.joined(separator: ", "))"
    }
}
