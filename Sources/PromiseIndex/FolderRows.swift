package import PromiseCore

/// What a folder is ordered by, without all the rest that is known of its items: a hundred thousand
/// of them are read while a person waits.
package struct FolderRow: Sendable {
    package var entry: EntryID
    package var name: FileName
    package var kind: NodeKind
    package var size: UInt64
    package var modificationTime: Timestamp
}

package enum FolderRows {
    /// At most `limit` of them, after a name, or the first ones.
    package static func rows(
        in parent: NodeID, after name: FileName?, limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [FolderRow] {
        try transaction.store.flushNodes()
        return try transaction.connection.all(
            """
            SELECT entry.id, entry.name, node.kind, node.size, node.modification_time
            FROM entry JOIN node ON node.id = entry.node
            WHERE entry.parent = ?1 AND entry.name > ?2 ORDER BY entry.name LIMIT ?3
            """, .id(parent), .bytes(name?.bytes ?? []), .count(limit)
        ) { row in
            FolderRow(
                entry: EntryID(row.integer(0)), name: row.name(1),
                kind: NodeKind(rawValue: Int(row.integer(2))) ?? .file, size: row.size(3),
                modificationTime: row.time(4))
        }
    }
}
