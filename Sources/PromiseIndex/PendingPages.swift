package import PromiseCore

/// Pending work, where there is too much of it to hold.
package enum PendingPages {
    /// A page in the order of rows, those behind row `last`.
    package static func page(
        after last: Int64, limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [(row: Int64, pending: Pending)] {
        try transaction.connection.all(
            "SELECT * FROM pending WHERE id > ?1 ORDER BY id LIMIT ?2",
            .integer(last), .count(limit)
        ) { ($0.integer(0), Pending($0)) }
    }

    /// How much there is, and how large the files are that it is about. Looks at every row.
    package static func totals(
        _ transaction: borrowing Transaction
    ) throws(Failure) -> (count: Int, byteCount: UInt64) {
        try transaction.store.flushNodes()
        // `sum` fails beyond 2^63.
        return try transaction.connection.first(
            """
            SELECT count(*), CAST(total(node.size) AS INTEGER) FROM pending
            LEFT JOIN entry ON entry.id = pending.id LEFT JOIN node ON node.id = entry.node
            """
        ) { (Int($0.integer(0)), $0.size(1)) } ?? (0, 0)
    }
}
