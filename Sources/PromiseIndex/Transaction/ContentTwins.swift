package import PromiseCore

/// What else may have a content, by what is known of it. Looks at all rows: for what is rare.
package enum ContentTwins {
    /// Another item that is known with the version and the size of this one.
    package static func synced(
        of item: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> SyncedItem? {
        try transaction.connection.first(
            "SELECT * FROM synced WHERE version = ?1 AND size = ?2 AND identifier != ?3 LIMIT 1",
            .text(item.version.rawValue), .unsigned(item.size), .identifier(item.identifier)
        ) { SyncedItem($0) }
    }

    /// Others that may have the same bytes, the most likely ones: they have the same version, or the same digest, or
    /// where one of these is not known the same time. `among`: only that one is looked at. What is empty has none.
    package static func alike(
        _ item: Item, among other: ItemIdentifier? = nil, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemIdentifier] {
        guard item.kind == .file, item.size > 0 else { return [] }
        let known = try transaction.fingerprint(of: item.identifier)
        let digest = known.flatMap { $0.version == item.version ? $0.digest : nil }
        // A range, so that the primary key is used: all text is below any bytes.
        return try transaction.connection.all(
            """
            SELECT synced.identifier FROM synced LEFT JOIN fingerprint
                ON fingerprint.identifier = synced.identifier AND fingerprint.version = synced.version
            WHERE synced.size = ?1 AND synced.identifier != ?2 AND synced.kind = ?3
                AND (synced.version = ?4 OR fingerprint.digest = ?5
                    OR (fingerprint.digest IS NULL OR ?5 IS NULL) AND synced.modification_time = ?6)
                AND synced.identifier BETWEEN ifnull(?7, '') AND ifnull(?7, x'')
            ORDER BY synced.version = ?4 DESC, fingerprint.digest = ?5 DESC, synced.identifier LIMIT 8
            """,
            .unsigned(item.size), .identifier(item.identifier), .count(NodeKind.file.rawValue),
            .text(item.version.rawValue), .optional(digest), .time(item.metadata.modificationTime),
            .identifier(other)
        ) { ItemIdentifier($0.text(0)) }
    }

    /// What was sent of a size to any item or place, oldest first.
    package static func sent(
        size: UInt64, _ transaction: borrowing Transaction
    ) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try transaction.connection.all("SELECT * FROM sent WHERE size = ?1 ORDER BY id", .unsigned(size)) { row in
            (SentID(row.integer(0)), SentChange(row))
        }
    }
}
