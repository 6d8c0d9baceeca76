import PromiseCore

/// A look through all names, where their index is of no use.
enum NameScan {
    static func entries(
        _ matcher: NameMatcher, _ limit: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> [Entry] {
        var result: [Entry] = []
        // Most names are passed over by C: of a million that are looked at one or none is wanted.
        try transaction.connection.forEach(
            "SELECT * FROM entry WHERE name_may_contain(name, ?1)", [.bytes(matcher.bytes)]
        ) { row in
            if row.withBytes(2, { matcher.matches($0) }) { result.append(Entry(row)) }
            return result.count < limit
        }
        return result
    }

    /// The index of names lacks so many, all that have changed since, that looking through all names takes less time than
    /// finding those by their nodes.
    static func isShorter(
        than change: Int64, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let most: Int64 = 20_000
        let count = try transaction.connection.first(
            "SELECT total(count) FROM (SELECT count FROM change WHERE sequence > ?1 LIMIT ?2)",
            .integer(change), .integer(most)
        ) { $0.integer(0) }
        return (count ?? 0) >= most
    }
}
