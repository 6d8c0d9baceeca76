package import PromiseCore

// Items that are here exactly as both sides last agreed on them. A listing brings many, and most stay so for good: their
// node and their only entry say everything that a row of `synced` would. `Node.isAsSynced` marks them. Whatever changes such
// a node or entry stores the row first, so that nobody outside of this module sees the difference.

extension Transaction {
    /// Nothing has rows of `synced` and `remote` but the root: of what has no entry nothing is known.
    package func knowsListedOnly() throws(Failure) -> Bool {
        let root = try rootIdentifier()?.rawValue ?? ""
        return try !connection.exists(
            "SELECT 1 FROM synced WHERE identifier <> ?1 UNION ALL SELECT 1 FROM remote WHERE identifier <> ?1 LIMIT 1",
            .text(root))
    }

    /// No rows of `synced` and `remote` name `parent`: at its places nothing is known but what is as synced.
    package func knowsListedOnly(in parent: ItemIdentifier) throws(Failure) -> Bool {
        let isKnown = try connection.first(
            """
            SELECT EXISTS (SELECT 1 FROM synced WHERE parent = ?1) OR EXISTS (SELECT 1 FROM remote WHERE parent = ?1)
            """, .identifier(parent)
        ) { $0.flag(0) }
        return isKnown == false
    }

    /// Makes the placeholder of a listed item, `node`, whose facts are the item's. False, and nothing has changed, when the
    /// index knows the item already or the name is taken. `isUnknown`: `knowsListedOnly` was true in this body.
    package func insertListed(
        _ node: Node, of item: Item, in folder: NodeID, isUnknown: Bool = false
    ) throws(Failure) -> Bool {
        if !isUnknown, try isKnown(item.identifier) { return false }
        var node = node
        node.id = try store.takeNodes()
        node.isAsSynced = true
        let entry = Entry(
            id: try store.takeEntry(), parent: folder, name: item.name, node: node.id, identifier: item.identifier,
            isExcluded: false, conflictsWith: nil)
        do throws(Failure) {
            try store.change(Store.entryInsertion) { entry.bindAll(to: &$0) }
        } catch {
            // One of the two unique indexes: an entry has the name or the identifier.
            if error.code == .exists { return false }
            throw error
        }
        try store.change(Store.nodeInsertion) { node.bindAll(to: &$0) }
        store.memory.totals.add(node)
        // Not into the caches: who lists a folder may never ask for what is in it. But the name was perhaps known to be free.
        store.touch(entry.place)
        store.places.remove(entry.place)
        return true
    }

    private func isKnown(_ identifier: ItemIdentifier) throws(Failure) -> Bool {
        try connection.first(
            """
            SELECT EXISTS (SELECT 1 FROM synced WHERE identifier = ?1) OR EXISTS (SELECT 1 FROM remote WHERE identifier = ?1)
            """, binding: { $0.identifier(identifier) }, read: { $0.flag(0) }) == true
    }

    /// Records that listing `folder` made `count` nodes, numbered one after the other from `first` on. Numbers that stand
    /// for nothing among them do no harm.
    package func recordListed(from first: NodeID, count: Int, in folder: NodeID) throws(Failure) {
        try record(.created, node: first, count: count, parent: folder, name: nil)
    }

    /// The number that the next node will have, or a later one.
    package var nextNode: NodeID { store.nextNodeID }

    /// A part of a folder with what its names stand for, ordered by name bytes: at most `limit` after `name`. Keeps nothing in
    /// the caches, unlike asking for one node after the other.
    package func nodes(in parent: NodeID, after name: FileName?, limit: Int) throws(Failure) -> [(entry: Entry, node: Node)] {
        try store.flushNodes()
        return try connection.all(
            """
            SELECT entry.*, node.* FROM entry JOIN node ON node.id = entry.node
            WHERE entry.parent = ?1 AND entry.name > ?2 ORDER BY entry.name LIMIT ?3
            """, .id(parent), .bytes(name?.bytes ?? []), .count(limit)
        ) { row in (Entry(row), Node(row, from: Entry.columnCount)) }
    }

    /// The same in the order in which the folder is listed: at most `limit` after the entry of that number, or the first ones.
    /// Of what was listed at other times than the rest some may be left out, so that no more than a few thousand rows are read.
    package func nodes(
        in parent: NodeID, numberedAfter number: EntryID?, limit: Int
    ) throws(Failure) -> [(entry: Entry, node: Node)] {
        let span: Int64 = 4096
        try store.flushNodes()
        var start = number?.rawValue
        if start == nil {
            start = try connection.first(
                "SELECT min(id) FROM (SELECT id FROM entry WHERE parent = ?1 LIMIT ?2)", .id(parent), .integer(span)
            ) { $0.integer(0) - 1 }
        }
        guard let start else { return [] }
        return try connection.all(
            """
            SELECT entry.*, node.* FROM entry JOIN node ON node.id = entry.node
            WHERE entry.id BETWEEN ?1 AND ?2 AND +entry.parent = ?3 ORDER BY entry.id LIMIT ?4
            """, .integer(start + 1), .integer(start + span), .id(parent), .count(limit)
        ) { row in (Entry(row), Node(row, from: Entry.columnCount)) }
    }

    // MARK: Standing in for rows of `synced`

    /// What the row of an item that is as synced would say; nil for any other.
    func listedAsSynced(_ identifier: ItemIdentifier) throws(Failure) -> SyncedItem? {
        guard let entry = try entry(for: identifier), let node = try node(entry.node), node.isAsSynced else { return nil }
        return try syncedItem(entry, node)
    }

    private func syncedItem(_ entry: Entry, _ node: Node) throws(Failure) -> SyncedItem {
        try syncedItem(entry, node, in: try itemIdentifier(of: entry.parent))
    }

    private func syncedItem(_ entry: Entry, _ node: Node, in parent: ItemIdentifier?) throws(Failure) -> SyncedItem {
        guard let identifier = entry.identifier, let version = node.version else {
            throw Failure(.corrupted, "node \(node.id) is said to be as synced, but has no item")
        }
        let item = Item(
            identifier: identifier, parent: parent, name: entry.name, kind: node.kind, size: node.size,
            metadata: Metadata(
                mode: node.mode, owner: node.owner, group: node.group, modificationTime: node.modificationTime),
            version: version, target: node.target)
        return SyncedItem(item: item, edits: node.edits)
    }

    func itemIdentifier(of folder: NodeID) throws(Failure) -> ItemIdentifier? {
        if folder == .root { return try rootIdentifier() }
        return try entries(of: folder).first?.identifier
    }

    /// Of the items in a folder that are as synced, at the names of `span`. Ordered by name bytes.
    func listedChildren(of parent: ItemIdentifier, in span: NameSpan) throws(Failure) -> [SyncedItem] {
        guard let folder = try folder(for: parent) else { return [] }
        try store.flushNodes()
        let rows = try connection.all(
            """
            SELECT entry.*, node.* FROM entry JOIN node ON node.id = entry.node
            WHERE entry.parent = ?1 AND entry.name > ?2 AND entry.name <= ?3 AND node.is_as_synced = 1 ORDER BY entry.name
            """, .id(folder), .bytes(span.after), .bytes(span.last)
        ) { row in (Entry(row), Node(row, from: Entry.columnCount)) }
        var result: [SyncedItem] = []
        result.reserveCapacity(rows.count)
        for (entry, node) in rows { result.append(try syncedItem(entry, node, in: parent)) }
        return result
    }

    /// What both sides agreed on for the items of a folder, `parent`, at the names from `first` to `last`. Of a large folder
    /// some may be left out, and nothing is returned while the provider is known to differ from what was agreed on anywhere.
    package func agreedItems(
        in parent: ItemIdentifier, from first: FileName, through last: FileName
    ) throws(Failure) -> [FileName: SyncedItem] {
        let limit = 4096
        guard let folder = try folder(for: parent), try !connection.exists("SELECT 1 FROM remote LIMIT 1") else { return [:] }
        try store.flushNodes()
        let listed = try connection.all(
            """
            SELECT entry.*, node.* FROM entry JOIN node ON node.id = entry.node
            WHERE entry.parent = ?1 AND entry.name BETWEEN ?2 AND ?3 AND node.is_as_synced = 1 LIMIT ?4
            """, .id(folder), .name(first), .name(last), .count(limit)
        ) { row in (Entry(row), Node(row, from: Entry.columnCount)) }
        let others = try connection.all(
            "SELECT * FROM synced WHERE parent = ?1 AND name BETWEEN ?2 AND ?3 LIMIT ?4", .identifier(parent), .name(first),
            .name(last), .count(limit)
        ) { SyncedItem($0) }
        if others.count == limit { return [:] }
        var result: [FileName: SyncedItem] = [:]
        result.reserveCapacity(listed.count + others.count)
        for (entry, node) in listed { result[entry.name] = try syncedItem(entry, node, in: parent) }
        // Of two items at one place the one with a row of its own is the one that was there last, as for `knownItem`.
        for item in others { result[item.item.name] = item }
        return result
    }

    /// How many items the provider has in a folder by all that is known; nil while it is known to differ from what was
    /// agreed on anywhere.
    package func agreedItemCount(in parent: ItemIdentifier) throws(Failure) -> Int? {
        guard let folder = try folder(for: parent), try !connection.exists("SELECT 1 FROM remote LIMIT 1") else { return nil }
        try store.flushNodes()
        let listed = try connection.first(
            """
            SELECT count(*) FROM entry JOIN node ON node.id = entry.node WHERE entry.parent = ?1 AND node.is_as_synced = 1
            """, .id(folder)
        ) { $0.integer(0) }
        let others = try connection.first("SELECT count(*) FROM synced WHERE parent = ?1", .identifier(parent)) {
            $0.integer(0)
        }
        return Int((listed ?? 0) + (others ?? 0))
    }

    func hasListedChildren(of parent: ItemIdentifier) throws(Failure) -> Bool {
        guard let folder = try folder(for: parent) else { return false }
        try store.flushNodes()
        return try connection.exists(
            """
            SELECT 1 FROM entry JOIN node ON node.id = entry.node WHERE entry.parent = ?1 AND node.is_as_synced = 1 LIMIT 1
            """, .id(folder))
    }

    func folder(for identifier: ItemIdentifier) throws(Failure) -> NodeID? {
        if try rootIdentifier() == identifier { return .root }
        return try entry(for: identifier)?.node
    }

    // MARK: Before something changes

    /// Stores the row that an item as synced has none of, for a change of the node or of its entry that follows.
    func storeSynced(of id: NodeID) throws(Failure) {
        guard let node = try node(id), node.isAsSynced else { return }
        try storeSynced(of: node)
    }

    /// As above; the row of the node's own table is left to the caller.
    func storeSynced(of node: Node) throws(Failure) {
        for entry in try entries(of: node.id) {
            let synced = try syncedItem(entry, node)
            try store.change(Store.syncedInsertion) { binder in
                synced.item.bindAll(to: &binder)
                binder.unsigned(synced.edits)
            }
        }
        try unmark(node)
    }

    /// Before an entry changes. What is in a folder names the folder's item as its parent.
    func storeSynced(of old: Entry, becoming new: Entry) throws(Failure) {
        if old.place == new.place && old.identifier == new.identifier && old.node == new.node { return }
        try storeSynced(of: old.node)
        if new.node != old.node { try storeSynced(of: new.node) }
        guard old.identifier != new.identifier, try node(old.node)?.kind == .folder else { return }
        try store.flushNodes()
        let children = try connection.all(
            """
            SELECT node.id FROM entry JOIN node ON node.id = entry.node WHERE entry.parent = ?1 AND node.is_as_synced = 1
            """, .id(old.node)
        ) { $0.node(0) }
        for child in children { try storeSynced(of: child) }
    }

    /// The item has a row of its own, or is not synced any more.
    func unmark(itemOf identifier: ItemIdentifier) throws(Failure) {
        guard let entry = try entry(for: identifier), let node = try node(entry.node), node.isAsSynced else { return }
        try unmark(node)
    }

    func unmark(_ node: Node) throws(Failure) {
        var node = node
        node.isAsSynced = false
        store.touch(node.id)
        try store.note(Store.plainNodeUpdate) { node.bindUnindexed(to: &$0) }
        try store.setDirty(node, isNew: false)
        store.nodes.set(node.id, node)
    }
}

extension Node {
    /// Whether the two stand for different states of the provider's item.
    func isItem(differentFrom other: Node) -> Bool {
        kind != other.kind || mode != other.mode || owner != other.owner || group != other.group || size != other.size
            || modificationTime != other.modificationTime || version != other.version || target != other.target
            || edits != other.edits
    }
}
