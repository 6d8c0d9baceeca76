package import PromiseCore

/// What of a folder the provider has not been told.
package enum PendingInFolder {
    /// Whether something in it is to be told of that changes the folder, and has not failed. What a folder in it is to get, which
    /// is there already, changes only that. Looks at what is in it.
    package static func exists(
        _ folder: NodeID, _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let hasMade = try transaction.connection.exists(
            """
            SELECT 1 FROM entry CROSS JOIN pending ON pending.id = entry.id
            LEFT JOIN synced ON synced.identifier = entry.identifier
            WHERE entry.parent = ?1 AND pending.error IS NULL AND synced.kind IS NOT 1 LIMIT 1
            """, .id(folder))
        if hasMade { return true }
        return try transaction.connection.exists(
            """
            SELECT 1 FROM synced CROSS JOIN pending ON pending.identifier = synced.identifier
            WHERE synced.parent = ?1 AND pending.error IS NULL LIMIT 1
            """, .identifier(identifier))
    }
}
