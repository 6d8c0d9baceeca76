package import PromiseCore

extension Transaction {
    /// Answered from the cache when it can be, also when there is none.
    package func entry(in parent: NodeID, named name: FileName) throws(Failure) -> Entry? {
        let place = Place(parent: parent, name: name)
        if let known = store.places.value(for: place) { return known }
        let entry = try connection.first(
            "SELECT * FROM entry WHERE parent = ?1 AND name = ?2",
            binding: { binder in
                binder.id(parent)
                binder.name(name)
            }, read: { Entry($0) })
        store.places.set(place, entry)
        return entry
    }

    package func entry(_ id: EntryID) throws(Failure) -> Entry? {
        try connection.first("SELECT * FROM entry WHERE id = ?1", .id(id)) { Entry($0) }
    }

    package func entry(for identifier: ItemIdentifier) throws(Failure) -> Entry? {
        try connection.first("SELECT * FROM entry WHERE identifier = ?1", .identifier(identifier)) { Entry($0) }
    }

    /// Oldest first. Answered from the cache when it can be.
    package func entries(of node: NodeID) throws(Failure) -> [Entry] {
        if let known = store.names.value(for: node) { return known }
        let entries = try connection.all("SELECT * FROM entry WHERE node = ?1 ORDER BY id", .id(node)) { Entry($0) }
        store.names.set(node, entries)
        return entries
    }

    /// Ordered by name bytes.
    package func children(of parent: NodeID) throws(Failure) -> [Entry] {
        try connection.all("SELECT * FROM entry WHERE parent = ?1 ORDER BY name", .id(parent)) { Entry($0) }
    }

    /// A part of a large folder, in the same order: at most `limit` entries after the name `after` (nil: from the first).
    package func children(of parent: NodeID, after name: FileName?, limit: Int) throws(Failure) -> [Entry] {
        // No name is empty, so every name is after the empty one.
        try connection.all(
            "SELECT * FROM entry WHERE parent = ?1 AND name > ?2 ORDER BY name LIMIT ?3", .id(parent), .bytes(name?.bytes ?? []),
            .count(limit)
        ) { Entry($0) }
    }

    /// Unresolved versions of a document, wherever they and it have been moved since, or removed.
    package func conflicts(with identifier: ItemIdentifier) throws(Failure) -> [Entry] {
        try connection.all("SELECT * FROM entry WHERE conflicts_with = ?1 ORDER BY name", .identifier(identifier)) { Entry($0) }
    }

    /// What stays on this machine, in the order in which it was made.
    package func excludedEntries(limit: Int) throws(Failure) -> [Entry] {
        try connection.all("SELECT * FROM entry WHERE is_excluded = 1 ORDER BY id LIMIT ?1", .count(limit)) { Entry($0) }
    }

    package func countsApart() throws(Failure) -> (excluded: Int, conflicts: Int) {
        try connection.first(EntryCounts.apart) { (Int($0.integer(0)), Int($0.integer(1))) } ?? (0, 0)
    }

    package func hasChildren(_ parent: NodeID) throws(Failure) -> Bool {
        try connection.exists("SELECT 1 FROM entry WHERE parent = ?1 LIMIT 1", .id(parent))
    }

    /// Throws `.exists` when the name is taken, `.invalid` when another entry has the identifier.
    package func insertEntry(
        in parent: NodeID, named name: FileName, node: NodeID, identifier: ItemIdentifier?, isExcluded: Bool = false,
        conflictsWith: ItemIdentifier? = nil
    ) throws(Failure) -> Entry {
        try storeSynced(of: node)
        let entry = Entry(
            id: try store.takeEntry(), parent: parent, name: name, node: node, identifier: identifier, isExcluded: isExcluded,
            conflictsWith: conflictsWith)
        store.touch(entry.place)
        let others = store.names.value(for: node)
        store.touchNames(of: node)
        do throws(Failure) {
            try store.change(Store.entryInsertion) { entry.bindAll(to: &$0) }
        } catch {
            throw try explain(error, entry)
        }
        store.places.set(entry.place, entry)
        if let others { store.names.set(node, others + [entry]) }
        return entry
    }

    /// Replaces everything stored of an entry: renames, moves, binds to an item. Throws `.notFound` when it is gone, `.exists`
    /// when its new name is taken, `.invalid` when another entry has the identifier.
    package func update(_ entry: Entry) throws(Failure) {
        guard let old = try known(entry) else { throw Failure(.notFound, "entry \(entry.id) is not in the index") }
        if old == entry { return }
        try storeSynced(of: old, becoming: entry)
        store.touchNames(of: old.node)
        if entry.node != old.node { store.touchNames(of: entry.node) }
        store.touch(old.place)
        store.touch(entry.place)
        do throws(Failure) {
            try write(entry, over: old)
        } catch {
            throw try explain(error, entry)
        }
        store.places.set(old.place, nil)
        store.places.set(entry.place, entry)
        if old.identifier != entry.identifier { try NotedName.take(entry, self) }
    }

    /// What the index has of an entry, whatever of it is to change.
    private func known(_ entry: Entry) throws(Failure) -> Entry? {
        if let cached = store.names.value(for: entry.node)?.first(where: { $0.id == entry.id }) { return cached }
        return try self.entry(entry.id)
    }

    /// Gives each of two entries the other's folder and name (RENAME_EXCHANGE of rename(2)). Throws `.notFound`.
    package func exchange(_ first: EntryID, _ second: EntryID) throws(Failure) {
        guard let one = try entry(first), let other = try entry(second) else {
            throw Failure(.notFound, "entry \(first) or \(second) is not in the index")
        }
        if first == second { return }
        try storeSynced(of: one.node)
        try storeSynced(of: other.node)
        store.touchNames(of: one.node)
        store.touchNames(of: other.node)
        store.touch(one.place)
        store.touch(other.place)
        var (movedOne, movedOther) = (one, other)
        (movedOne.parent, movedOne.name) = (other.parent, other.name)
        (movedOther.parent, movedOther.name) = (one.parent, one.name)
        // No name is empty, so nothing can be in the way at this place.
        try store.change("UPDATE entry SET name = x'' WHERE id = ?1", .id(first))
        try write(movedOther, over: other)
        try write(movedOne, over: one)
        store.places.set(movedOne.place, movedOne)
        store.places.set(movedOther.place, movedOther)
    }

    /// Removes the name and its pending row. Throws `.notFound` when it is gone. A node whose last entry this was is
    /// deleted or given the link count 0 by the caller in the same body.
    package func delete(_ entry: EntryID) throws(Failure) {
        guard let old = try self.entry(entry) else { throw Failure(.notFound, "entry \(entry) is not in the index") }
        try storeSynced(of: old.node)
        store.touchNames(of: old.node)
        store.touch(old.place)
        try store.change("DELETE FROM pending WHERE id = ?1", .id(entry))
        try store.change("DELETE FROM entry WHERE id = ?1", .id(entry))
        if try node(old.node)?.kind == .folder { try moveDisplaced(from: old.node, to: old.parent) }
        store.places.set(old.place, nil)
    }

    /// The names from the root to a node by its first entry; nil for a node without a name. Empty for the root.
    package func path(of node: NodeID) throws(Failure) -> [FileName]? {
        var names: [FileName] = []
        var current = node
        while current != .root {
            guard let step = try entries(of: current).first else { return nil }
            if names.count > 100_000 { throw Failure(.corrupted, "the folders above node \(node) form a circle") }
            names.append(step.name)
            current = step.parent
        }
        return names.reversed()
    }

    /// One statement, so that a broken constraint leaves the row as it was; and only what differs, so that an index whose
    /// columns stay is not touched.
    private func write(_ entry: Entry, over old: Entry) throws(Failure) {
        if entry.place == old.place && entry.node == old.node {
            try store.change(
                "UPDATE entry SET identifier = ?2, is_excluded = ?3, conflicts_with = ?4 WHERE id = ?1", .id(entry.id),
                .identifier(entry.identifier), .flag(entry.isExcluded), .identifier(entry.conflictsWith))
        } else if entry.identifier == old.identifier && entry.node == old.node {
            try store.change(
                "UPDATE entry SET parent = ?2, name = ?3, is_excluded = ?4, conflicts_with = ?5 WHERE id = ?1", .id(entry.id),
                .id(entry.parent), .name(entry.name), .flag(entry.isExcluded), .identifier(entry.conflictsWith))
        } else if entry.identifier == old.identifier {
            try store.change(
                "UPDATE entry SET parent = ?2, name = ?3, node = ?4, is_excluded = ?5, conflicts_with = ?6 WHERE id = ?1",
                .id(entry.id), .id(entry.parent), .name(entry.name), .id(entry.node), .flag(entry.isExcluded),
                .identifier(entry.conflictsWith))
        } else {
            try store.change(
                """
                UPDATE entry SET parent = ?2, name = ?3, node = ?4, identifier = ?5, is_excluded = ?6, conflicts_with = ?7
                WHERE id = ?1
                """
            ) { entry.bindAll(to: &$0) }
        }
    }

    /// Which of the two unique indexes a constraint failure came from.
    private func explain(_ failure: Failure, _ entry: Entry) throws(Failure) -> Failure {
        guard failure.code == .exists else { return failure }
        let holder = try connection.first(
            "SELECT id FROM entry WHERE parent = ?1 AND name = ?2", .id(entry.parent), .name(entry.name)
        ) { $0.entry(0) }
        if let holder, holder != entry.id { return Failure(.exists, "\(entry.name) exists in folder \(entry.parent)") }
        return Failure(.invalid, "another entry stands for the item \(entry.identifier?.rawValue ?? "")")
    }
}

private enum EntryCounts {
    /// What stays on this machine, and documents that have unresolved versions. By indices.
    static let apart: StaticString = """
        SELECT (SELECT count(*) FROM entry WHERE is_excluded = 1),
            (SELECT count(DISTINCT conflicts_with) FROM entry WHERE conflicts_with IS NOT NULL)
        """
}
