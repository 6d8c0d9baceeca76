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
    /// where one of these is not known the same time. What is empty has none.
    package static func alike(
        _ item: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemIdentifier] {
        guard item.kind == .file, item.size > 0 else { return [] }
        let digest = try digest(of: item, transaction)
        try transaction.store.flushNodes()
        return try transaction.connection.all(
            """
            SELECT known.identifier FROM (
                SELECT identifier, version, modification_time FROM synced
                    WHERE size = ?1 AND kind = ?3 AND identifier != ?2
                UNION ALL
                SELECT entry.identifier, node.version, node.modification_time FROM node
                    JOIN entry ON entry.node = node.id
                    WHERE node.is_as_synced = 1 AND node.size = ?1 AND node.kind = ?3 AND entry.identifier != ?2
            ) AS known
            LEFT JOIN fingerprint ON fingerprint.identifier = known.identifier AND fingerprint.version = known.version
            WHERE known.version = ?4 OR fingerprint.digest = ?5
                OR (fingerprint.digest IS NULL OR ?5 IS NULL) AND known.modification_time = ?6
            ORDER BY known.version = ?4 DESC, fingerprint.digest = ?5 DESC, known.identifier LIMIT 8
            """,
            .unsigned(item.size), .identifier(item.identifier), .count(NodeKind.file.rawValue),
            .text(item.version.rawValue), .optional(digest), .time(item.metadata.modificationTime)
        ) { ItemIdentifier($0.text(0)) }
    }

    /// Whether `alike` may name that one. Does not look at all rows.
    package static func areAlike(
        _ item: Item, _ other: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard item.kind == .file, item.size > 0, other != item.identifier,
            let known = try transaction.synced(other)?.item, known.kind == .file, known.size == item.size
        else { return false }
        if known.version == item.version { return true }
        guard let one = try digest(of: item, transaction), let another = try digest(of: known, transaction) else {
            return known.metadata.modificationTime == item.metadata.modificationTime
        }
        return one == another
    }

    private static func digest(of item: Item, _ transaction: borrowing Transaction) throws(Failure) -> String? {
        let known = try transaction.fingerprint(of: item.identifier)
        return known.flatMap { $0.version == item.version ? $0.digest : nil }
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
