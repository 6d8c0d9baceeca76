package import PromiseProvider

/// Where an extension is: a program that is started here, or a socket at which somebody else's process listens.
package struct ExtensionLocation: Hashable, Sendable {
    package enum Form: Hashable, Sendable {
        /// The words are what follows the program's name on its command line.
        case program(path: String, arguments: [String])
        case socket(path: String)
    }

    package let form: Form

    /// Throws `.permanent` with a sentence on what is neither `extension+exec:/path` nor `extension:/path`.
    package init(parsing name: String) throws(ProviderError) {
        let shape = "write extension+exec:/path/to/program, or extension:/path/to.sock"
        guard let colon = name.firstIndex(of: ":") else {
            throw ProviderError(.permanent, "'\(name)' names no extension: \(shape)")
        }
        let rest = name[name.index(after: colon)...]
        guard rest.hasPrefix("/"), !rest.hasSuffix("/"), !rest.utf8.contains(0) else {
            throw ProviderError(.permanent, "'\(name)' has no absolute path: \(shape)")
        }
        switch name[..<colon] {
        case "extension": form = .socket(path: String(rest))
        case "extension+exec":
            let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            var arguments: [String] = []
            for word in parts.count > 1 ? parts[1].split(separator: "&") : [] {
                guard let bytes = PercentText.decoded(word), let text = String(validating: bytes, as: UTF8.self),
                    !bytes.contains(0)
                else { throw ProviderError(.permanent, "'\(name)' has an argument that is not percent-encoded text: \(shape)") }
                arguments.append(text)
            }
            form = .program(path: String(parts[0]), arguments: arguments)
        default: throw ProviderError(.permanent, "'\(name)' names no extension: \(shape)")
        }
    }

    /// As the user named it.
    package var name: String {
        switch form {
        case .socket(let path): "extension:" + path
        case .program(let path, let arguments):
            "extension+exec:" + path
                + (arguments.isEmpty ? "" : "?" + arguments.map { PercentText.encoded(Array($0.utf8)) }.joined(separator: "&"))
        }
    }

    /// What messages, logs and domains call it: the last part of the path.
    package var shortName: String {
        switch form {
        case .socket(let path), .program(let path, _): path.split(separator: "/").last.map(String.init) ?? "extension"
        }
    }
}
