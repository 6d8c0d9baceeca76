import PromiseCore

/// Names that no file can have: empty, longer than 255 bytes, with a `/` or a NUL, `.` or `..`, or
/// of another type than bytes. The kernel refuses to list a folder with one of them, and a provider
/// would be asked for another place.
enum NameRepair {
    /// To be called when marks of what is as synced can be believed. A sentence for each.
    static func mend(
        now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        var done: [String] = []
        let entries = try transaction.connection.all(
            """
            SELECT * FROM entry WHERE typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E')
            """
        ) { Entry($0) }
        var names = FreeNames()
        for entry in entries { done.append(try mend(entry, &names, now, transaction)) }
        done += try mendSynced(transaction)
        let remote = try transaction.store.change(
            """
            DELETE FROM remote WHERE is_deleted = 0 AND parent IS NOT NULL AND (
                typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E'))
            """)
        if remote > 0 {
            done.append("news of items with a name that no file can have were forgotten")
        }
        return done + (try mendDisplaced(&names, transaction))
    }

    // MARK: Names here

    private static func mend(
        _ old: Entry, _ names: inout FreeNames, _ now: Timestamp,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> String {
        var entry = old
        entry.name = try name(of: old, &names, transaction)
        let store = transaction.store
        store.touchNames(of: old.node)
        store.touch(old.place)
        store.touch(entry.place)
        // Not as another change of a name: what both sides agreed on would be the old one, and the
        // provider, where the item has its right name, would be told of this one.
        try store.change(
            "UPDATE entry SET name = ?2 WHERE id = ?1", .id(entry.id), .name(entry.name))
        store.places.set(old.place, nil)
        store.places.set(entry.place, entry)
        try transaction.record(
            .created, node: entry.node, parent: entry.parent, name: entry.name)
        if entry.identifier == nil {
            try transaction.setPending(Pending(subject: .entry(entry.id), since: now, due: now))
        }
        return "entry \(entry.id) had a name that no file can have; it is now \(entry.name)"
    }

    /// What it says where only its type is wrong; else what was agreed on, or a made-up one.
    private static func name(
        of entry: Entry, _ names: inout FreeNames, _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        var known = [FileName(entry.name.bytes)]
        if let identifier = entry.identifier {
            let agreed = try transaction.synced(identifier)
            known.append(agreed.flatMap { FileName($0.item.name.bytes) })
        }
        for case let name? in known
        where try isFree(name, in: entry, transaction) { return name }
        return try names.next(for: entry.node, in: entry.parent, transaction)
    }

    /// Asked of the table: text and bytes that look the same are one place to the cache.
    private static func isFree(
        _ name: FileName, in entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        try !transaction.connection.exists(
            "SELECT 1 FROM entry WHERE parent = ?1 AND name = ?2 AND id <> ?3", .id(entry.parent),
            .name(name), .id(entry.id))
    }

    // MARK: Names at the provider

    /// The item is taken for what its name here says, until it is looked at again. What has no name
    /// here comes from the provider.
    private static func mendSynced(
        _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        let wrong = try transaction.connection.all(
            """
            SELECT * FROM synced WHERE parent IS NOT NULL AND (
                typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E'))
            """
        ) { SyncedItem($0) }
        for var agreed in wrong {
            let identifier = agreed.item.identifier
            if let entry = try transaction.entry(for: identifier) {
                agreed.item.name = entry.name
                try transaction.setSynced(agreed)
            } else {
                try transaction.deleteSynced(identifier)
            }
        }
        return wrong.map {
            "the item \($0.item.identifier.rawValue) was known by a name that no file can have; "
                + "it will be looked at"
        }
    }

    private static func mendDisplaced(
        _ names: inout FreeNames, _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        let wrong = try transaction.connection.all(
            """
            SELECT node FROM displaced
            WHERE typeof(name) <> 'blob' OR length(name) NOT BETWEEN 1 AND 255
                OR instr(name, x'2F') OR instr(name, x'00') OR name IN (x'2E', x'2E2E')
            """
        ) { $0.node(0) }
        for node in wrong {
            try transaction.store.change(
                "UPDATE displaced SET name = ?2 WHERE node = ?1", .id(node),
                .name(try names.next(for: node, in: .root, transaction)))
        }
        return wrong.map { "the lost name of node \($0) was none; it has another now" }
    }
}
