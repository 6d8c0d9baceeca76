import PromiseCore

/// Items without a name here that nobody has removed: the row of the name is lost.
///
/// Who removes something puts it in line for the provider in the same transaction. Where that is not
/// so the missing name would look like a removal all the same, as the line is made anew from what is
/// missing, and the provider would be told to delete the item.
enum LostNames {
    /// The items come back from the provider. To be called before the line is made anew.
    static func bringBack(_ transaction: borrowing Transaction) throws(Failure) -> [String] {
        try transaction.store.flushNodes()
        let lost = try transaction.connection.all(
            query, .identifier(try transaction.rootIdentifier())
        ) { SyncedItem($0) }
        for agreed in lost {
            let item = agreed.item
            try transaction.deleteSynced(item.identifier)
            // What was sent of it would be taken for a sign that it was removed here since.
            try transaction.deleteSent(of: item.identifier)
            try transaction.setRemote(item.identifier, .present(item))
        }
        return lost.map { "the name of '\($0.item.name.display)' was lost; the item comes back" }
    }

    /// What is in a folder that is to be deleted goes with it; of a folder that is not listed here
    /// nothing is missing.
    static let query: StaticString = """
        WITH RECURSIVE removed_item (identifier) AS (
            SELECT identifier FROM pending WHERE identifier IS NOT NULL
            UNION SELECT synced.identifier FROM removed_item
                JOIN synced ON synced.parent = removed_item.identifier
                -- What was moved out of it before takes what is in it along.
                WHERE NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier))
        SELECT * FROM synced
        WHERE parent IS NOT NULL AND identifier IS NOT ?1
            AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier)
            AND NOT EXISTS (SELECT 1 FROM remote WHERE remote.identifier = synced.identifier)
            AND identifier NOT IN (SELECT identifier FROM removed_item)
            AND NOT EXISTS (
                SELECT 1 FROM node WHERE is_populated = 0 AND node.id = CASE
                    WHEN synced.parent = ?1 THEN 1
                    ELSE (SELECT entry.node FROM entry WHERE entry.identifier = synced.parent) END)
        """
}
