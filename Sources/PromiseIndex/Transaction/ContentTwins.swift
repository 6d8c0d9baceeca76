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

    /// What was sent of a size to any item or place, oldest first.
    package static func sent(
        size: UInt64, _ transaction: borrowing Transaction
    ) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try transaction.connection.all("SELECT * FROM sent WHERE size = ?1 ORDER BY id", .unsigned(size)) { row in
            (SentID(row.integer(0)), SentChange(row))
        }
    }
}
