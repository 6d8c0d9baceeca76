package import PromiseCore

/// What can be read and changed at one moment. Valid only inside the closure that was given it.
///
/// Besides what is said at a method, every one throws `.storeFull`, `.inputOutput`, `.corrupted` or `.busy` when the
/// database below fails; then the whole body is undone. Its methods are in the files `Transaction+….swift`.
package struct Transaction: ~Copyable {
    let store: Store

    var connection: Connection { store.connection }

    /// The number that this body gets when it changes anything and is kept.
    package var body: UInt64 { store.sequence + 1 }
    /// It has changed something so far.
    package var hasChanged: Bool { store.hasBodyChanged }
}

// Small facts about the domain (root identifier, anchor, boot id, …).

extension Transaction {
    package func setting(_ key: String) throws(Failure) -> String? {
        try connection.first("SELECT value FROM setting WHERE key = ?1", .text(key)) { $0.text(0) }
    }

    /// The keys that begin with `prefix`, which holds no character of a pattern.
    package func settingKeys(startingWith prefix: String) throws(Failure) -> [String] {
        try connection.all("SELECT key FROM setting WHERE key GLOB ?1 || '*'", .text(prefix)) { $0.text(0) }
    }

    /// nil removes it.
    package func setSetting(_ key: String, _ value: String?) throws(Failure) {
        precondition(!key.hasPrefix("reserved."), "the numbers reserved by the index are its own: \(key)")
        if let value {
            try store.change(
                "INSERT INTO setting VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value", .text(key), .text(value))
        } else {
            try store.change("DELETE FROM setting WHERE key = ?1", .text(key))
        }
    }

    /// The identifier of the provider's root folder; nil before the first contact.
    func rootIdentifier() throws(Failure) -> ItemIdentifier? {
        try setting("root.identifier").map { ItemIdentifier($0) }
    }
}
