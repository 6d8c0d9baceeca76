import PromiseCore

// Rows of the table `node` are written behind: a folder changes with every name in it, and a new file several times
// before it is closed. A change is in the record of its body; the table has it when the epoch is committed, or before
// that when a statement needs it: such a statement calls `flushNodes` first.

struct DirtyNode {
    var node: Node
    /// The table has no row of it.
    var isNew: Bool
}

extension Store {
    /// More than these are not kept back.
    private static let dirtyNodeCountMax = 10_000

    func setDirty(_ node: Node, isNew: Bool) throws(Failure) {
        dirtyNodes[node.id] = DirtyNode(node: node, isNew: isNew || dirtyNodes[node.id]?.isNew == true)
        if dirtyNodes.count > Store.dirtyNodeCountMax { try flushNodes() }
    }

    /// Brings the table up to date.
    func flushNodes() throws(Failure) {
        if dirtyNodes.isEmpty { return }
        // In the order of the table.
        for id in dirtyNodes.keys.sorted() {
            guard let dirty = dirtyNodes[id] else { continue }
            let node = dirty.node
            if dirty.isNew {
                try connection.run(Store.nodeInsertion) { node.bindAll(to: &$0) }
            } else {
                try connection.run(Store.nodeUpdate) { node.bindAll(to: &$0) }
            }
            dirtyNodes[id]?.isNew = false
        }
        dirtyNodes.removeAll(keepingCapacity: true)
    }

    static let nodeInsertion: StaticString =
        "INSERT INTO node VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24)"

    static let entryInsertion: StaticString = "INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"

    static let syncedInsertion: StaticString = """
        INSERT INTO synced VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT DO UPDATE SET parent = ?2, name = ?3, kind = ?4, size = ?5, mode = ?6, owner = ?7, owner_group = ?8,
            modification_time = ?9, version = ?10, target = ?11, edits = ?12
        """

    static let nodeUpdate: StaticString = """
        UPDATE node SET kind = ?2, content = ?3, pin = ?4, is_open_for_writing = ?5, is_populated = ?6, is_durable = ?7,
            mode = ?8, owner = ?9, owner_group = ?10, size = ?11, local_bytes = ?12, access_time = ?13,
            modification_time = ?14, change_time = ?15, birth_time = ?16, last_use = ?17, link_count = ?18, device = ?19,
            generation = ?20, edits = ?21, version = ?22, target = ?23, is_as_synced = ?24
        WHERE id = ?1
        """

    /// Without the columns that an index names.
    static let plainNodeUpdate: StaticString = """
        UPDATE node SET mode = ?2, owner = ?3, owner_group = ?4, size = ?5, local_bytes = ?6, access_time = ?7,
            modification_time = ?8, change_time = ?9, birth_time = ?10, device = ?11, generation = ?12, edits = ?13,
            version = ?14, target = ?15, is_as_synced = ?16
        WHERE id = ?1
        """
}
