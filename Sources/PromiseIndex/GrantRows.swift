package import PromiseCore

/// The stored grants, which are opaque here: a record and what authenticates it.
package struct GrantRow: Hashable, Sendable {
    package var id: Int64
    package var record: [UInt8]
    package var seal: [UInt8]

    package init(id: Int64, record: [UInt8], seal: [UInt8]) {
        self.id = id
        self.record = record
        self.seal = seal
    }
}

package enum GrantRows {
    private static let lastNumber = "grant.last"

    package static func all(_ transaction: borrowing Transaction) throws(Failure) -> [GrantRow] {
        try transaction.connection.all("SELECT * FROM access_grant ORDER BY id") { row in
            GrantRow(id: row.integer(0), record: row.bytes(1), seal: row.bytes(2))
        }
    }

    /// Inserts or replaces.
    package static func set(
        _ row: GrantRow, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.store.change(
            """
            INSERT INTO access_grant VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET record = excluded.record, seal = excluded.seal
            """, .integer(row.id), .bytes(row.record), .bytes(row.seal))
    }

    /// Nothing happens when there is none.
    package static func delete(
        _ id: Int64, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.store.change("DELETE FROM access_grant WHERE id = ?1", .integer(id))
    }

    /// A number that no grant has had.
    package static func nextNumber(_ transaction: borrowing Transaction) throws(Failure) -> Int64 {
        let newest = try transaction.connection.first("SELECT max(id) FROM access_grant") {
            $0.integer(0)
        }
        let last = try transaction.setting(lastNumber).flatMap { Int64($0) } ?? 0
        let next = max(newest ?? 0, last) + 1
        try transaction.setSetting(lastNumber, "\(next)")
        return next
    }
}
