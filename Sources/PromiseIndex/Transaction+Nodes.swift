package import PromiseCore

extension Transaction {
    /// Answered from the cache when it can be. Nil when there is no such node.
    package func node(_ id: NodeID) throws(Failure) -> Node? {
        if let node = store.nodes.value(for: id) { return node }
        let node = try connection.first("SELECT * FROM node WHERE id = ?1", binding: { $0.id(id) }, read: { Node($0) })
        if let node { store.nodes.set(id, node) }
        return node
    }

    /// Assigns the id (the one given is ignored) and returns the node as stored. An id is never given twice in the life
    /// of the database, not even when the insertion is undone.
    package func insert(_ node: Node) throws(Failure) -> Node {
        var stored = node
        stored.id = try store.takeNode()
        store.touch(stored.id)
        try store.change(
            "INSERT INTO node VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23)"
        ) { stored.bindAll(to: &$0) }
        store.memory.totals.add(stored)
        store.nodes.set(stored.id, stored)
        return stored
    }

    /// Replaces everything stored of a node. Throws `.notFound` when there is no such node.
    package func update(_ node: Node) throws(Failure) {
        guard let old = try self.node(node.id) else { throw Failure(.notFound, "node \(node.id) is not in the index") }
        if old == node { return }
        store.touch(node.id)
        // SQLite rewrites the entries of every index that names an assigned column, so those are left out when they can be.
        if old.hasSameIndexedColumns(as: node) {
            try store.change(
                """
                UPDATE node SET mode = ?2, owner = ?3, owner_group = ?4, size = ?5, local_bytes = ?6, access_time = ?7,
                    modification_time = ?8, change_time = ?9, birth_time = ?10, device = ?11, generation = ?12, edits = ?13,
                    version = ?14, target = ?15
                WHERE id = ?1
                """
            ) { node.bindUnindexed(to: &$0) }
        } else {
            try store.change(
                """
                UPDATE node SET kind = ?2, content = ?3, pin = ?4, is_open_for_writing = ?5, is_populated = ?6, is_durable = ?7,
                    mode = ?8, owner = ?9, owner_group = ?10, size = ?11, local_bytes = ?12, access_time = ?13,
                    modification_time = ?14, change_time = ?15, birth_time = ?16, last_use = ?17, link_count = ?18, device = ?19,
                    generation = ?20, edits = ?21, version = ?22, target = ?23
                WHERE id = ?1
                """
            ) { node.bindAll(to: &$0) }
        }
        store.memory.totals.add(node)
        store.memory.totals.remove(old)
        store.nodes.set(node.id, node)
    }

    /// Removes the node with its attributes and ranges. It must have no entry and no children, else this traps. Throws
    /// `.notFound` when there is no such node.
    package func delete(_ node: NodeID) throws(Failure) {
        guard let old = try self.node(node) else { throw Failure(.notFound, "node \(node) is not in the index") }
        precondition(node != .root, "the root folder is never deleted")
        let isNamed = try connection.exists("SELECT 1 FROM entry WHERE node = ?1 LIMIT 1", .id(node))
        precondition(!isNamed, "node \(node) is deleted only after its last entry")
        if old.kind == .folder {
            let isEmpty = try !hasChildren(node)
            precondition(isEmpty, "folder \(node) is deleted only after its children")
        }
        store.touch(node)
        try store.change("DELETE FROM attribute WHERE node = ?1", .id(node))
        try store.change("DELETE FROM local_range WHERE node = ?1", .id(node))
        try store.change("DELETE FROM node WHERE id = ?1", .id(node))
        store.memory.totals.remove(old)
        store.nodes.remove(node)
    }
}
