package import PromiseCore

extension Transaction {
    /// Answered from the cache when it can be. Nil when there is no such node.
    package func node(_ id: NodeID) throws(Failure) -> Node? {
        if let node = store.nodes.value(for: id) { return node }
        if let dirty = store.dirtyNodes[id] { return dirty.node }
        let node = try connection.first("SELECT * FROM node WHERE id = ?1", binding: { $0.id(id) }, read: { Node($0) })
        if let node { store.nodes.set(id, node) }
        return node
    }

    /// Takes `count` ids in a row out of what `insert` assigns, for nodes that are inserted `as` one of them. Returns the first.
    package func reserveNodes(_ count: Int) throws(Failure) -> NodeID {
        precondition(count > 0, "at least one id is reserved")
        return try store.takeNodes(count)
    }

    /// Assigns the id (the one given is ignored), or uses a reserved one that was never used, and returns the node as stored.
    /// An id is never given twice in the life of the database, not even when the insertion is undone.
    package func insert(_ node: Node, as reserved: NodeID? = nil) throws(Failure) -> Node {
        var stored = node
        if let reserved { stored.id = reserved } else { stored.id = try store.takeNodes() }
        stored.isAsSynced = false
        store.touch(stored.id)
        try store.note(Store.nodeInsertion) { stored.bindAll(to: &$0) }
        try store.setDirty(stored, isNew: true)
        store.memory.totals.add(stored)
        store.nodes.set(stored.id, stored)
        store.touchNames(of: stored.id)
        store.names.set(stored.id, [])
        return stored
    }

    /// Replaces everything stored of a node. Throws `.notFound` when there is no such node.
    package func update(_ node: Node) throws(Failure) {
        guard let old = try self.node(node.id) else { throw Failure(.notFound, "node \(node.id) is not in the index") }
        var node = node
        node.isAsSynced = old.isAsSynced
        if old == node { return }
        if old.isAsSynced, old.isItem(differentFrom: node) {
            try storeSynced(of: old)
            node.isAsSynced = false
        }
        store.touch(node.id)
        if old.hasSameIndexedColumns(as: node) {
            try store.note(Store.plainNodeUpdate) { node.bindUnindexed(to: &$0) }
        } else {
            try store.note(Store.nodeUpdate) { node.bindAll(to: &$0) }
        }
        try store.setDirty(node, isNew: false)
        store.memory.totals.add(node)
        store.memory.totals.remove(old)
        store.nodes.set(node.id, node)
    }

    /// Subfolders came to a folder (1) or went (-1). Nothing happens when the folder is gone.
    package func countSubfolders(of folder: NodeID, _ change: Int) throws(Failure) {
        guard var node = try node(folder) else { return }
        node.countSubfolders(change)
        try update(node)
    }

    /// Removes the node with its attributes, ranges and holes. It must have no entry and no children, else this traps. Throws
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
        if store.hasAttributes { try store.change("DELETE FROM attribute WHERE node = ?1") { $0.id(node) } }
        if old.content == .partial { try store.change("DELETE FROM local_range WHERE node = ?1") { $0.id(node) } }
        if store.hasHoles { try store.change("DELETE FROM hole WHERE node = ?1") { $0.id(node) } }
        if old.linkCount == 0 { try deleteDisplaced(node) }
        if store.dirtyNodes.removeValue(forKey: node)?.isNew == true {
            try store.note("DELETE FROM node WHERE id = ?1") { $0.id(node) }
        } else {
            try store.change("DELETE FROM node WHERE id = ?1") { $0.id(node) }
        }
        store.memory.totals.remove(old)
        store.nodes.remove(node)
        store.touchNames(of: node)
    }
}
