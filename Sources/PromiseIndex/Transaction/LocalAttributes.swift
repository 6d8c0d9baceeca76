package import PromiseCore

/// Extended attributes and ACLs of all items.
package enum LocalAttributes {
    package struct Row: Sendable {
        package var node: NodeID
        package var name: [UInt8]
        package var value: [UInt8]
    }

    /// Items that have any but those of `ofUsers`: `exceptUsers` of no more than so many bytes.
    package static func itemCount(
        exceptUsers byteCountMax: Int?, _ transaction: borrowing Transaction
    ) throws(Failure) -> Int {
        if !transaction.store.hasAttributes { return 0 }
        guard let byteCountMax else {
            return try transaction.connection.first("SELECT COUNT(DISTINCT node) FROM attribute") {
                Int($0.integer(0))
            } ?? 0
        }
        return try transaction.connection.first(
            """
            SELECT COUNT(DISTINCT node) FROM attribute
            WHERE name < ?1 OR name >= ?2 OR length(value) > ?3 OR name >= ?4 AND name < ?5
            """, .bytes(users.lower), .bytes(users.upper), .unsigned(UInt64(byteCountMax)), .bytes(own.lower),
            .bytes(own.upper)
        ) { Int($0.integer(0)) } ?? 0
    }

    /// Those whose names begin with `user.`.
    package static func ofUsers(_ transaction: borrowing Transaction) throws(Failure) -> [Row] {
        if !transaction.store.hasAttributes { return [] }
        return try transaction.connection.all(
            "SELECT node, name, value FROM attribute WHERE name >= ?1 AND name < ?2 ORDER BY node, name",
            .bytes(users.lower), .bytes(users.upper)
        ) { Row(node: $0.node(0), name: $0.bytes(1), value: $0.bytes(2)) }
    }

    private static let users = (lower: Array("user.".utf8), upper: Array("user/".utf8))
    private static let own = (lower: Array("user.promisefs.".utf8), upper: Array("user.promisefs/".utf8))
}
