import Crypto
package import PromiseCore

/// What an application is told in the place of words that have names of folders which were not given to it.
package enum ApplicationSight {
    /// At a store that knows places only an identifier is the path: then it is opaque, and the same for the same item.
    package static func identifier(_ identifier: ItemIdentifier) -> ItemIdentifier {
        hasPath(identifier.rawValue) ? ItemIdentifier(opaque(identifier.rawValue)) : identifier
    }

    /// Another account has another one.
    package static func account(_ text: String) -> String { opaque(text) }

    /// What kind of storage it is, without its address.
    package static func provider(_ address: String) -> String {
        String(address.prefix { $0 != ":" })
    }

    /// A reason that may have come from a server.
    package static func sentence(_ text: String) -> String {
        hasPath(text) ? "the storage does not take it" : text
    }

    private static func hasPath(_ text: String) -> Bool { text.contains("/") }

    private static func opaque(_ text: String) -> String {
        SHA256.hash(data: Array(text.utf8)).prefix(12).map { hexadecimal($0) }.joined()
    }
}
