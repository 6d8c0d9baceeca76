package import PromiseCore

// What a listing of a folder reads, in the order of entries' numbers. A number is never given twice and an entry keeps its
// own when it is renamed, so a reader that goes on after a number misses nothing and sees nothing twice, whatever came and
// went meanwhile, and nobody has to remember where it was.

extension Transaction {
    /// The numbers of a folder's entries, ascending. Needs no row of them, so it is for large folders, too.
    package func childNumbers(of parent: NodeID) throws(Failure) -> [EntryID] {
        // By the index of names, which has the numbers; one of numbers would cost every new name a page more.
        var numbers = try connection.all("SELECT id FROM entry WHERE parent = ?1", .id(parent)) { $0.entry(0) }
        numbers.sort { $0.rawValue < $1.rawValue }
        return numbers
    }

    /// The same of the entries that came after the one numbered `last`, anywhere: for somebody who knows those before.
    package func childNumbers(of parent: NodeID, after last: EntryID) throws(Failure) -> [EntryID] {
        try connection.all(
            "SELECT id FROM entry WHERE id > ?1 AND +parent = ?2 ORDER BY id", .id(last), .id(parent)
        ) { $0.entry(0) }
    }

    /// Those of the entries that are in the folder now, with their nodes, ascending; `numbers` are. Nothing of it is kept in
    /// the caches: the kernel remembers what it was told.
    package func children(of parent: NodeID, numbered numbers: ArraySlice<EntryID>) throws(Failure) -> [ListedChild] {
        guard let first = numbers.first, let last = numbers.last else { return [] }
        // What was listed or made at one time has numbers side by side, and is read in one go. The plus sign keeps SQLite
        // from going through the whole folder by the index of names.
        if last.rawValue - first.rawValue < 4 * Int64(numbers.count) {
            let rows = try connection.all(
                """
                SELECT entry.id, entry.name, entry.node, node.* FROM entry LEFT JOIN node ON node.id = entry.node
                WHERE entry.id BETWEEN ?1 AND ?2 AND +entry.parent = ?3 ORDER BY entry.id
                """, .id(first), .id(last), .id(parent)
            ) { row in (row.entry(0), row.name(1), row.node(2), row.isNull(3) ? nil : Node(row, from: 3)) }
            var children: [ListedChild] = []
            children.reserveCapacity(rows.count)
            for (id, name, number, stored) in rows {
                // A row may be older than the node, or not there yet.
                guard let node = store.dirtyNodes[number]?.node ?? stored else { continue }
                children.append(ListedChild(id: id, name: name, node: node))
            }
            return children
        }
        var children: [ListedChild] = []
        for number in numbers {
            guard let entry = try entry(number), entry.parent == parent, let node = try node(entry.node) else { continue }
            children.append(ListedChild(id: entry.id, name: entry.name, node: node))
        }
        return children
    }
}

/// A line of a folder's listing.
package struct ListedChild {
    package let id: EntryID
    package let name: FileName
    package let node: Node
}
