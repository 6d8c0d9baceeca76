import PromiseCore

/// What the index says of the root folder itself, on which all else hangs.
enum RootRepair {
    /// To be called before anything else is mended. How many links it has is counted later.
    static func mend(_ transaction: borrowing Transaction) throws(Failure) -> [String] {
        var done: [String] = []
        if try transaction.connection.exists(
            "SELECT 1 FROM node WHERE id = 1 AND (kind <> 1 OR content <> 0 OR is_as_synced <> 0)"
        ) {
            try makeFolder(transaction)
            done.append("the root was said to be no folder; it is one again")
        }
        let root = try transaction.rootIdentifier()
        for var entry in try transaction.entries(of: .root) {
            // What was agreed on about the root itself stays.
            if entry.identifier == root { entry.identifier = nil }
            try transaction.forget(entry)
            done.append("\(entry.name) stood for the root folder and was removed")
        }
        if try transaction.setting("root.identifier") == nil, let item = try rootItem(transaction) {
            try transaction.setSetting("root.identifier", item)
            done.append("the index did not say which storage it belongs to; it does again")
        }
        return done
    }

    /// The row is written as it is to be: what it says cannot be read as a node, and is in no total.
    private static func makeFolder(_ transaction: borrowing Transaction) throws(Failure) {
        let store = transaction.store
        store.touch(.root)
        try store.change(
            """
            UPDATE node SET kind = 1, content = 0, is_open_for_writing = 0, is_as_synced = 0,
                target = NULL WHERE id = 1
            """)
        store.nodes.remove(.root)
        store.memory.totals = try Totals(from: transaction.connection)
    }

    /// What both sides agreed on about the root, the only item that is in no folder. Nil before the
    /// first mount.
    private static func rootItem(_ transaction: borrowing Transaction) throws(Failure) -> String? {
        let known = try transaction.connection.all(
            "SELECT identifier FROM synced WHERE parent IS NULL LIMIT 2"
        ) { $0.text(0) }
        return known.count == 1 ? known[0] : nil
    }
}
