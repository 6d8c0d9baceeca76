package import PromiseCore

/// Which contents a power cut may take.
package enum ContentQuestions {
    /// Files whose content is from a version that the item of their name does not have, or that stays here: nobody else may have
    /// it. Looks at everything that is pending and at names that stay here.
    package static func ofOtherVersions(_ transaction: borrowing Transaction) throws(Failure) -> [Node] {
        try transaction.store.flushNodes()
        return try transaction.connection.all(
            """
            SELECT * FROM node WHERE kind = 0 AND content <> 0 AND version IS NOT NULL AND id IN (
                SELECT entry.node FROM pending JOIN entry ON entry.id = pending.id
                    JOIN node AS sent ON sent.id = entry.node
                    LEFT JOIN synced ON synced.identifier = entry.identifier
                WHERE synced.version IS NOT sent.version
                UNION SELECT node FROM entry WHERE is_excluded = 1)
            """
        ) { Node($0) }
    }

    /// What local content takes that is never evicted: of files that stay on this machine, and of pinned ones. Looks at
    /// each of them.
    package static func keptBytes(_ transaction: borrowing Transaction) throws(Failure) -> UInt64 {
        try transaction.store.flushNodes()
        let excluded = try transaction.connection.first(
            """
            SELECT COALESCE(SUM(local_bytes), 0) FROM node
            WHERE id IN (SELECT node FROM entry INDEXED BY entry_excluded WHERE is_excluded = 1)
            """
        ) { $0.unsigned(0) }
        let pinned = try transaction.connection.first(
            """
            SELECT COALESCE(SUM(local_bytes), 0) FROM node INDEXED BY node_local
            WHERE kind = 0 AND content <> 0 AND pin = 1
            """
        ) { $0.unsigned(0) }
        return (excluded ?? 0).plus(pinned ?? 0)
    }

    /// Files that were written to or fetched since then, and not synchronized; no more than `limit`. Looks at every file that has
    /// content here.
    package static func unsynchronized(
        since time: Timestamp, limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Node] {
        try transaction.store.flushNodes()
        return try transaction.connection.all(
            """
            SELECT * FROM node INDEXED BY node_local WHERE kind = 0 AND content <> 0 AND is_durable NOT IN (1, 3)
                AND (last_use >= ?1 OR change_time >= ?1) LIMIT ?2
            """, .time(time), .count(limit)
        ) { Node($0) }
    }
}
