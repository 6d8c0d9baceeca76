package import PromiseCore

// Questions of the daemon. Those about content read the partial index `node_local`, which is as long as there are files
// with local content.

extension Transaction {
    package func populatedFolders() throws(Failure) -> [NodeID] {
        try store.flushNodes()
        return try connection.all("SELECT id FROM node INDEXED BY node_populated WHERE is_populated = 1") { $0.node(0) }
    }

    /// The first folders in a folder, in the order in which it is read.
    package func folders(in parent: NodeID, limit: Int) throws(Failure) -> [(node: NodeID, name: FileName)] {
        try store.flushNodes()
        return try connection.all(
            """
            SELECT entry.node, entry.name FROM entry JOIN node ON node.id = entry.node
            WHERE entry.parent = ?1 AND node.kind = 1 ORDER BY entry.id LIMIT ?2
            """, .id(parent), .count(limit)
        ) { ($0.node(0), $0.name(1)) }
    }

    package func nodesOpenForWriting() throws(Failure) -> [Node] {
        try store.flushNodes()
        return try connection.all("SELECT * FROM node INDEXED BY node_local WHERE kind = 0 AND is_open_for_writing = 1") {
            Node($0)
        }
    }

    /// Nodes without a name: unlinked while open, and left by a crash. Whoever removes a node's last name and keeps the
    /// node sets its link count to 0, a folder's too; `verify` names those where that was forgotten.
    package func orphans() throws(Failure) -> [Node] {
        try store.flushNodes()
        return try connection.all(
            """
            SELECT * FROM node INDEXED BY node_unlinked
            WHERE link_count = 0 AND id <> 1 AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id)
            """
        ) { Node($0) }
    }

    /// Whether an entry stands for the node, whose own row may be lost.
    package func isNamed(_ id: NodeID) throws(Failure) -> Bool {
        try store.flushNodes()
        return try connection.first("SELECT 1 FROM entry WHERE node = ?1 LIMIT 1", binding: { $0.id(id) }, read: { _ in true })
            ?? false
    }

    /// Files with local content, least recently used first, not pinned, not open for writing, after `after` in that order,
    /// of which each name was sent once. Modified content is among them: the caller knows what the provider has.
    package func evictionCandidates(limit: Int, after: Node? = nil) throws(Failure) -> [Node] {
        try store.flushNodes()
        return try connection.all(
            """
            SELECT * FROM node INDEXED BY node_local
            WHERE kind = 0 AND content <> 0 AND pin <> 1 AND is_open_for_writing = 0 AND (last_use, id) > (?1, ?2)
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id AND (is_excluded = 1 OR identifier IS NULL))
            ORDER BY last_use, id LIMIT ?3
            """, .integer(after?.lastUse.rawValue ?? .min), .unsigned(after?.id.rawValue ?? 0), .count(limit)) { Node($0) }
    }

    /// Pinned files whose content is not here, by their numbers: at most `limit` after one.
    package func pinnedPlaceholders(after node: NodeID, limit: Int) throws(Failure) -> [NodeID] {
        try store.flushNodes()
        return try connection.all(
            """
            SELECT id FROM node INDEXED BY node_pinned
            WHERE pin = 1 AND kind = 0 AND content <> 2 AND id > ?1 ORDER BY id LIMIT ?2
            """, .id(node), .count(limit)
        ) { $0.node(0) }
    }

    /// Files whose content is in this state. For `.absent` every node is looked at.
    package func nodesWithContent(in state: ContentState) throws(Failure) -> [Node] {
        try store.flushNodes()
        if state == .absent { return try connection.all("SELECT * FROM node WHERE kind = 0 AND content = 0") { Node($0) } }
        return try connection.all(
            "SELECT * FROM node INDEXED BY node_local WHERE kind = 0 AND content <> 0 AND content = ?1", .count(state.rawValue)
        ) { Node($0) }
    }

    /// The totals of nodes are kept in memory; pending rows are counted.
    package func counts() throws(Failure) -> IndexCounts {
        let pending = try connection.first("SELECT count(*) FROM pending") { Int($0.integer(0)) }
        let failing = try connection.first("SELECT count(*) FROM pending WHERE error IS NOT NULL") { Int($0.integer(0)) }
        let totals = store.memory.totals
        return IndexCounts(
            nodes: totals.nodes, placeholders: totals.placeholders, pending: pending ?? 0, failing: failing ?? 0,
            localBytes: totals.localBytes,
            removed: totals.removedCount - totals.removedMentioned, removedBytes: totals.removedBytes)
    }
}
