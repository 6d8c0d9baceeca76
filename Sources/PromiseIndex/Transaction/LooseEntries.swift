import PromiseCore

/// Entries in what is no folder, and folders in a circle: nobody can reach them.
enum LooseEntries {
    /// Gives them names in the root folder; a sentence for each. No folder has a second name. All
    /// are looked for once, as a mount waits meanwhile, and there may be many.
    static func attach(
        now: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) -> [String] {
        var names = FreeNames()
        var done: [String] = []
        for entry in try stray(transaction) {
            done.append(try attach(entry, now, &names, transaction))
        }
        for entry in try unreachable(transaction) {
            done.append(try attach(entry, now, &names, transaction))
        }
        return done
    }

    private static func attach(
        _ loose: Entry, _ now: Timestamp, _ names: inout FreeNames,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> String {
        var entry = loose
        entry.parent = .root
        entry.name = try names.next(for: entry.node, in: .root, transaction)
        try transaction.update(entry)
        try transaction.recordMove(from: loose, to: entry)
        try transaction.setPending(Pending(subject: .entry(entry.id), since: now, due: now))
        return "\(loose.name) was in a folder that cannot be reached; it is now \(entry.name)"
    }

    private static func stray(_ transaction: borrowing Transaction) throws(Failure) -> [Entry] {
        try transaction.connection.all(
            """
            SELECT * FROM entry WHERE parent NOT IN (SELECT id FROM node WHERE kind = 1) ORDER BY id
            """
        ) { Entry($0) }
    }

    /// One of each circle, and what is in folders without a name: all else that cannot be reached
    /// is below these.
    private static func unreachable(
        _ transaction: borrowing Transaction
    ) throws(Failure) -> [Entry] {
        let lost = try transaction.connection.all(
            """
            WITH RECURSIVE reachable (id) AS (
                SELECT 1
                UNION SELECT entry.node FROM reachable JOIN entry ON entry.parent = reachable.id
                    JOIN node ON node.id = entry.node WHERE node.kind = 1)
            SELECT * FROM entry WHERE parent NOT IN (SELECT id FROM reachable) ORDER BY id
            """
        ) { Entry($0) }
        var named: [NodeID: Entry] = [:]
        for entry in lost where named[entry.node] == nil { named[entry.node] = entry }
        var result = lost.filter { named[$0.parent] == nil }
        var seen: Set<NodeID> = []
        for entry in lost {
            var (current, way) = (entry, Set<NodeID>())
            while seen.insert(current.parent).inserted, let above = named[current.parent] {
                way.insert(current.parent)
                current = above
            }
            if way.contains(current.parent) { result.append(current) }
        }
        return result
    }
}

/// Made-up names that are free in a folder.
struct FreeNames {
    /// How many were tried: a file may have many names.
    private var tried: [NodeID: Int] = [:]

    mutating func next(
        for node: NodeID, in folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        for number in tried[node, default: 0]... {
            tried[node] = number + 1
            let suffix = number == 0 ? "" : " \(number)"
            let text = "recovered \(String(node.rawValue, radix: 16))\(suffix)"
            guard let name = FileName(text) else { break }
            if try transaction.entry(in: folder, named: name) == nil { return name }
        }
        preconditionFailure("a made-up name is a name, and one is free")
    }
}
