import PromiseCore

/// Rows that say of a node what cannot be.
enum RowRepair {
    /// Nodes that are said to be as synced, and of which nobody knows as what. To be called before
    /// anything else is mended: such a node can be neither listed nor renamed nor removed. What is
    /// here is put in line by what follows; of what is not here the name goes, and comes back from
    /// the provider with all that is known there.
    static func clearMarks(_ transaction: borrowing Transaction) throws(Failure) -> [String] {
        let wrong = try transaction.connection.all(
            """
            SELECT * FROM node WHERE is_as_synced = 1 AND (version IS NULL
                OR NOT EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id)
                OR EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id AND (
                    identifier IS NULL OR identifier IN (SELECT identifier FROM synced))))
            """
        ) { Node($0) }
        // All of them first: to change one may need its folder, or another name.
        for node in wrong { try transaction.unmark(node) }
        for node in wrong { try forgetAbsent(node, transaction) }
        try transaction.store.flushNodes()
        return wrong.map { "node \($0.id) was said to be as synced, but had no item; it is compared again" }
    }

    private static func forgetAbsent(
        _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard node.kind == .file, node.content == .absent else { return }
        let names = try transaction.entries(of: node.id)
        for name in names {
            guard let identifier = name.identifier else { continue }
            if try transaction.synced(identifier) != nil { return }
        }
        for name in names { try transaction.forget(name) }
        // Programs may have it open; it goes at the next start.
        guard var node = try transaction.node(node.id) else { return }
        node.linkCount = 0
        try transaction.update(node)
    }

    /// Holes of what is not whole, lost names of what has one, and what was removed and is there.
    static func dropOfOtherKinds(
        _ keep: (NodeID) throws(Failure) -> [String], _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        var done: [String] = []
        let holes = try transaction.store.change(
            "DELETE FROM hole WHERE node NOT IN (SELECT id FROM node WHERE content = 2)")
        if holes > 0 { done.append("holes of files that are not whole here were forgotten") }
        let lost = try transaction.store.change(
            "DELETE FROM displaced WHERE node NOT IN (SELECT id FROM node WHERE link_count = 0)")
        if lost > 0 { done.append("lost names of files that have one, or are gone, were forgotten") }
        let removed = try transaction.connection.all(
            """
            SELECT removed.id FROM removed JOIN node ON node.id = removed.node
            WHERE removed.kind = 0 AND (node.link_count > 0 OR node.kind <> 0)
            """
        ) { $0.integer(0) }
        for id in removed {
            guard let item = try RemovedRows.item(id, transaction) else { continue }
            // A file that is there has the content file; nothing else has one.
            let isFile = try transaction.node(item.node)?.kind == .file
            let places = isFile ? [] : try keep(item.node)
            try RemovedRows.delete(item, transaction)
            done.append("node \(item.node) is there and is not kept as removed" + shown(places))
        }
        return done
    }

    /// Where content was put, for people.
    static func shown(_ places: [String]) -> String {
        let list = places.map { "'\($0)'" }.joined(separator: " and ")
        return places.isEmpty ? "" : "; its content is kept as " + list
    }

    static func mendRanges(_ transaction: borrowing Transaction) throws(Failure) -> [String] {
        let wrong = try transaction.connection.all(
            """
            SELECT DISTINCT local_range.node FROM local_range LEFT JOIN node ON node.id = local_range.node
            WHERE node.id IS NULL OR node.content <> 1 OR lower < 0 OR upper <= lower OR upper > size
            """
        ) { $0.node(0) }
        for id in wrong { try drop(id, transaction) }
        // These are all here, only not as one.
        let touching = try transaction.connection.all(
            """
            SELECT DISTINCT node FROM (
                SELECT node, lower, lag(upper) OVER (PARTITION BY node ORDER BY lower) AS before FROM local_range)
            WHERE before >= lower
            """
        ) { $0.node(0) }
        for id in touching {
            let ranges = try transaction.ranges(of: id)
            try drop(id, transaction)
            try transaction.setRanges(of: id, to: ranges)
        }
        return wrong.map { "what is said to be local of node \($0) was wrong; it will be fetched again" }
            + touching.map { "what is local of node \($0) was in pieces that touch; they were put together" }
    }

    private static func drop(
        _ node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.store.change("DELETE FROM local_range WHERE node = ?1", .id(node))
    }

    /// A folder has two links and one for each subfolder that has a name in it.
    static func countSubfolders(_ transaction: borrowing Transaction) throws(Failure) -> [String] {
        try transaction.store.flushNodes()
        let wrong = try transaction.connection.all(
            """
            SELECT id, 2 + count FROM (
                SELECT folder.id, folder.link_count, (
                    SELECT count(*) FROM entry JOIN node AS below ON below.id = entry.node
                    WHERE entry.parent = folder.id AND below.kind = 1) AS count
                FROM node AS folder WHERE folder.kind = 1 AND (folder.link_count <> 0 OR folder.id = 1))
            WHERE link_count <> 2 + count
            """
        ) { ($0.node(0), $0.word(1)) }
        for (id, count) in wrong {
            guard var folder = try transaction.node(id) else { continue }
            folder.linkCount = count
            try transaction.update(folder)
            try recordChange(of: id, transaction)
        }
        return wrong.map { "the subfolders of node \($0.0) were counted again" }
    }

    /// Attributes changed that programs see, and the kernel keeps.
    static func recordChange(
        of node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for entry in try transaction.entries(of: node) {
            try transaction.record(.modified, node: node, parent: entry.parent, name: entry.name)
        }
    }
}
