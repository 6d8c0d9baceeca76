package import PromiseCore

// Items that may satisfy a predicate, a page at a time: the lock is given back between pages, so a question never holds up
// programs on the mount. What changes meanwhile is in the change feed.

/// An item as the index has it.
package struct IndexedItem: Sendable {
    package var entry: Entry
    package var node: Node

    package init(entry: Entry, node: Node) {
        self.entry = entry
        self.node = node
    }
}

/// Where the next page of candidates begins.
package enum CandidatePosition: Sendable {
    case start
    /// After this node in the index of names, which has seen the changes up to this one.
    case names(after: NodeID, upTo: Int64)
    /// After this change: names that the index of names has not seen.
    case recent(after: Int64)
    case entries(after: EntryID)
    case end
}

extension Transaction {
    /// Items that may satisfy the plan's predicate, after `position`, which is moved on. An item may come twice.
    package func candidates(
        _ plan: CandidatePlan, _ position: inout CandidatePosition, limit: Int
    ) throws(Failure) -> [IndexedItem] {
        switch position {
        case .end: return []
        case .start:
            position = try startOfCandidates(plan)
            return try candidates(plan, &position, limit: limit)
        case .names(let node, let change):
            return try namedCandidates(plan, after: node, upTo: change, &position, limit)
        case .recent(let change):
            return try recentCandidates(after: change, &position, limit)
        case .entries(let entry):
            return try scannedCandidates(plan, after: entry, &position, limit)
        }
    }

    private func startOfCandidates(_ plan: CandidatePlan) throws(Failure) -> CandidatePosition {
        if plan.isEmpty { return .end }
        let search = try searchPosition()
        guard plan.namePart != nil, !search.isRebuilding else { return .entries(after: EntryID(0)) }
        return .names(after: NodeID(0), upTo: search.change)
    }

    private func namedCandidates(
        _ plan: CandidatePlan, after node: NodeID, upTo change: Int64, _ position: inout CandidatePosition, _ limit: Int
    ) throws(Failure) -> [IndexedItem] {
        let phrase = NameMatcher.phrase(plan.namePart ?? "")
        let nodes = try connection.all(
            "SELECT rowid FROM name_search WHERE name_search MATCH ?1 AND rowid > ?2 ORDER BY rowid LIMIT ?3", .text(phrase),
            .id(node), .count(limit)
        ) { $0.node(0) }
        position = nodes.last.map { .names(after: $0, upTo: change) } ?? .recent(after: change)
        return try items(of: nodes)
    }

    private func recentCandidates(
        after change: Int64, _ position: inout CandidatePosition, _ limit: Int
    ) throws(Failure) -> [IndexedItem] {
        // Who takes long may find that the feed begins later than where the index of names ended.
        guard try searchPosition().pruned <= change else {
            position = .entries(after: EntryID(0))
            return []
        }
        // A listing makes one change of up to 256 nodes.
        let changes = try connection.all(
            "SELECT sequence, node, count FROM change WHERE sequence > ?1 ORDER BY sequence LIMIT ?2", .integer(change),
            .count(max(1, limit / 16))
        ) { (sequence: $0.integer(0), nodes: $0.unsigned(1)..<$0.unsigned(1) + $0.unsigned(2)) }
        position = changes.last.map { .recent(after: $0.sequence) } ?? .end
        return try items(of: Set(changes.flatMap(\.nodes)).sorted().map { NodeID($0) })
    }

    private func scannedCandidates(
        _ plan: CandidatePlan, after entry: EntryID, _ position: inout CandidatePosition, _ limit: Int
    ) throws(Failure) -> [IndexedItem] {
        try store.flushNodes()
        // The bounds are told of rows that are looked at, not of rows that match: so a page takes the same time always.
        let last =
            try connection.first(
                "SELECT max(id) FROM (SELECT id FROM entry WHERE id > ?1 ORDER BY id LIMIT ?2)", .id(entry), .count(limit)
            ) { $0.isNull(0) ? nil : $0.entry(0) } ?? nil
        guard let last else {
            position = .end
            return []
        }
        position = .entries(after: last)
        return try connection.all(
            """
            SELECT entry.*, node.* FROM entry JOIN node ON node.id = entry.node
            WHERE entry.id > ?1 AND entry.id <= ?2 AND node.size BETWEEN ?3 AND ?4
                AND node.modification_time BETWEEN ?5 AND ?6 AND node.birth_time BETWEEN ?7 AND ?8
            """, .id(entry), .id(last), .integer(plan.size.lowerBound), .integer(plan.size.upperBound),
            .integer(plan.modificationTime.lowerBound), .integer(plan.modificationTime.upperBound),
            .integer(plan.birthTime.lowerBound), .integer(plan.birthTime.upperBound)
        ) { IndexedItem(entry: Entry($0), node: Node($0, from: Entry.columnCount)) }
    }

    /// Every name of each of these nodes; what no node has the number of is skipped.
    package func items(of nodes: [NodeID]) throws(Failure) -> [IndexedItem] {
        var result: [IndexedItem] = []
        for id in nodes {
            guard let node = try node(id) else { continue }
            for entry in try entries(of: id) { result.append(IndexedItem(entry: entry, node: node)) }
        }
        return result
    }

    /// A folder and what is above it, nearest first, without the node itself; nil when it has no name any more.
    package func foldersAbove(_ node: NodeID) throws(Failure) -> [NodeID]? {
        if node == .root { return [] }
        guard let entry = try entries(of: node).first else { return nil }
        return try foldersAbove(entry)
    }

    /// As `foldersAbove`, of every name that a node has: each folder once.
    package func foldersAboveNames(of node: NodeID) throws(Failure) -> [NodeID]? {
        let names = try entries(of: node)
        guard names.count > 1 else { return try foldersAbove(node) }
        var result: [NodeID] = []
        var known: Set<NodeID> = []
        for name in names { result += (try foldersAbove(name) ?? []).filter { known.insert($0).inserted } }
        return result.isEmpty ? nil : result
    }

    /// The same of each name.
    package func foldersOfNames(_ node: NodeID) throws(Failure) -> [[NodeID]] {
        var result: [[NodeID]] = []
        for name in try entries(of: node) {
            if let folders = try foldersAbove(name) { result.append(folders) }
        }
        return result
    }

    /// As `foldersAbove`, for one of a node's names.
    package func foldersAbove(_ entry: Entry) throws(Failure) -> [NodeID]? {
        var result = [entry.parent]
        while let last = result.last, last != .root {
            guard let step = try entries(of: last).first else { return nil }
            if result.count > 100_000 { throw Failure(.corrupted, "the folders above node \(entry.node) form a circle") }
            result.append(step.parent)
        }
        return result
    }
}
