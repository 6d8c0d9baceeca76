package import PromiseCore

/// Extended attributes and ACLs, which stay on this machine: what there is of them, for people.
package enum LocalAttributes {
    /// Items that have any.
    package static func itemCount(_ transaction: borrowing Transaction) throws(Failure) -> Int {
        if !transaction.store.hasAttributes { return 0 }
        return try transaction.connection.first("SELECT COUNT(DISTINCT node) FROM attribute") { Int($0.integer(0)) } ?? 0
    }
}
