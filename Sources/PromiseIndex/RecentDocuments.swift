package import PromiseCore

/// What was used last on this machine, of what is here.
package enum RecentDocuments {
    /// Names of the newest, newest first.
    package static func newest(
        _ count: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [IndexedItem] {
        try transaction.store.flushNodes()
        let nodes = try transaction.connection.all(
            "SELECT id FROM node WHERE kind = 0 AND content <> 0 ORDER BY last_use DESC, id DESC LIMIT ?1",
            .count(count)
        ) { $0.node(0) }
        return try transaction.items(of: nodes)
    }
}
