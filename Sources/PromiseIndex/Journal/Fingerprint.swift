package import PromiseCore

/// What the content of an item's version is, by a digest: another version of the same digest is the same
/// content.
package struct Fingerprint: Hashable, Sendable {
    package var version: ContentVersion
    package var size: UInt64
    package var digest: String

    package init(version: ContentVersion, size: UInt64, digest: String) {
        self.version = version
        self.size = size
        self.digest = digest
    }
}

extension Transaction {
    package func fingerprint(of item: ItemIdentifier) throws(Failure) -> Fingerprint? {
        try connection.first(
            "SELECT version, size, digest FROM fingerprint WHERE identifier = ?1", .identifier(item)
        ) { row in
            Fingerprint(
                version: ContentVersion(row.text(0)), size: row.unsigned(1), digest: row.text(2))
        }
    }

    /// Nil removes it. It goes with what was agreed on about the item, too.
    package func setFingerprint(
        _ fingerprint: Fingerprint?, of item: ItemIdentifier
    ) throws(Failure) {
        guard let fingerprint else {
            try store.change("DELETE FROM fingerprint WHERE identifier = ?1", .identifier(item))
            return
        }
        try store.change(
            """
            INSERT INTO fingerprint VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET version = ?2, size = ?3, digest = ?4
            """, .identifier(item), .text(fingerprint.version.rawValue), .unsigned(fingerprint.size),
            .text(fingerprint.digest))
    }
}
