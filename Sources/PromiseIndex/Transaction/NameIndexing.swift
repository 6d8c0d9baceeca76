import PromiseCore

/// Makes rows of the trigram index of names.
enum NameIndexing {
    /// Rows that are removed, and nodes that are looked at, at most while the lock is held.
    private static let pieceCount = 300

    /// Goes through all nodes by their ids. What changes meanwhile is in the feed and indexed again
    /// afterwards. Old rows go where new ones come: to empty the table at once takes as long as to
    /// fill it, and nobody could use the index meanwhile. Until then they do no harm, as whoever
    /// finds something by them looks at the names that there are.
    static func rebuildSome(
        _ change: Int64, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let pruned = try transaction.setting("change.pruned").flatMap { Int64($0) } ?? 0
        let position = try transaction.setting("search.rebuild").flatMap { Int64($0) }
        guard pruned <= change, let done = position else {
            try transaction.setSetting("search.change", "\(try transaction.lastChange())")
            try transaction.setSetting("search.rebuild", "0")
            return true
        }
        try transaction.store.flushNodes()
        let last = try endOfPiece(after: done, transaction)
        let upper = SQLValue.integer(last ?? .max)
        try transaction.store.change(
            "DELETE FROM name_search WHERE rowid > ?1 AND rowid <= ?2", .integer(done), upper)
        let nodes = try transaction.connection.all(
            "SELECT id FROM node WHERE id > ?1 AND id <= ?2 ORDER BY id", .integer(done), upper
        ) { $0.node(0) }
        for node in nodes { try insert(node, transaction) }
        try transaction.setSetting("search.rebuild", last.map { "\($0)" })
        return true
    }

    /// Nil: what is left is one piece. Where nodes have gone there may be many rows and no node.
    private static func endOfPiece(
        after done: Int64, _ transaction: borrowing Transaction
    ) throws(Failure) -> Int64? {
        let skipped = SQLValue.count(pieceCount - 1)
        let node = try transaction.connection.first(
            "SELECT id FROM node WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2", .integer(done),
            skipped
        ) { $0.integer(0) }
        let row = try transaction.connection.first(
            "SELECT rowid FROM name_search WHERE rowid > ?1 ORDER BY rowid LIMIT 1 OFFSET ?2",
            .integer(done), skipped
        ) { $0.integer(0) }
        guard let node else { return row }
        return row.map { min(node, $0) } ?? node
    }

    /// A node's row becomes what its names are now.
    static func renew(_ node: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        try transaction.store.change("DELETE FROM name_search WHERE rowid = ?1", .id(node))
        try insert(node, transaction)
    }

    private static func insert(
        _ node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let names = try transaction.entries(of: node).map { NameMatcher.indexed($0.name) }
        if names.isEmpty { return }
        let text = "/" + names.joined(separator: "/") + "/"
        try transaction.store.change(
            "INSERT INTO name_search (rowid, names) VALUES (?1, ?2)", .id(node), .text(text))
    }
}
