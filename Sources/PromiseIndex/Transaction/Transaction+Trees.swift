package import PromiseCore

// The synced tree, and the remote tree: stored only where it differs from the synced one.

/// Names after one and up to another, in the order of their bytes.
package struct NameSpan: Hashable, Sendable {
    let after: [UInt8]
    let last: [UInt8]

    /// No name is empty, and none is longer than 255 bytes.
    package static let all = NameSpan(after: [], last: [UInt8](repeating: 0xFF, count: 256))
}

extension Transaction {
    package func synced(_ identifier: ItemIdentifier) throws(Failure) -> SyncedItem? {
        let row = try connection.first("SELECT * FROM synced WHERE identifier = ?1", .identifier(identifier)) { SyncedItem($0) }
        if let row { return row }
        return try listedAsSynced(identifier)
    }

    package func setSynced(_ item: SyncedItem) throws(Failure) {
        try unmark(itemOf: item.item.identifier)
        try store.change(Store.syncedInsertion) { binder in
            item.item.bindAll(to: &binder)
            binder.unsigned(item.edits)
        }
    }

    /// Nothing happens when there is none.
    package func deleteSynced(_ identifier: ItemIdentifier) throws(Failure) {
        try unmark(itemOf: identifier)
        try store.change("DELETE FROM synced WHERE identifier = ?1", .identifier(identifier))
        try setFingerprint(nil, of: identifier)
    }

    /// A synced item at this place that no entry stands for (its name was removed or reused here).
    package func unboundSynced(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> SyncedItem? {
        try connection.first(
            """
            SELECT * FROM synced WHERE parent = ?1 AND name = ?2
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier)
            LIMIT 1
            """, .identifier(parent), .name(name)
        ) { SyncedItem($0) }
    }

    /// A synced item at this place, of those that are noted apart from their entry: as all are that were moved here since.
    package func synced(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> SyncedItem? {
        try connection.first(
            "SELECT * FROM synced WHERE parent = ?1 AND name = ?2 LIMIT 1", .identifier(parent), .name(name)
        ) { SyncedItem($0) }
    }

    /// An item that others have moved to this place, and that was removed here.
    package func unboundRemote(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> Item? {
        try connection.first(
            """
            SELECT * FROM remote WHERE parent = ?1 AND name = ?2 AND is_deleted = 0
                AND EXISTS (SELECT 1 FROM synced WHERE synced.identifier = remote.identifier)
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = remote.identifier)
            LIMIT 1
            """, .identifier(parent), .name(name)
        ) { Item($0, from: 2) }
    }

    /// The item that was last agreed to be at this place, when an entry stands for it, wherever that is.
    package func boundSynced(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> ItemIdentifier? {
        try connection.first(
            """
            SELECT identifier FROM synced WHERE parent = ?1 AND name = ?2
                AND EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier)
            LIMIT 1
            """, .identifier(parent), .name(name)
        ) { ItemIdentifier($0.text(0)) }
    }

    /// Ordered by name bytes.
    package func syncedChildren(of parent: ItemIdentifier, in span: NameSpan = .all) throws(Failure) -> [SyncedItem] {
        let rows = try connection.all(
            "SELECT * FROM synced WHERE parent = ?1 AND name > ?2 AND name <= ?3", .identifier(parent), .bytes(span.after),
            .bytes(span.last)
        ) { SyncedItem($0) }
        return (rows + (try listedChildren(of: parent, in: span))).sorted { $0.item.name < $1.item.name }
    }

    /// The names of a folder, of which there may be a million, in parts of about `count` items each. The part that begins after
    /// the one before, or the first; nil after the last. What comes to a part that was looked at is not in a later one.
    package func nameSpan(
        of parent: ItemIdentifier, after span: NameSpan?, count: Int
    ) throws(Failure) -> NameSpan? {
        let after = span?.last ?? []
        if after == NameSpan.all.last { return nil }
        let synced = try connection.first(
            "SELECT name FROM synced WHERE parent = ?1 AND name > ?2 ORDER BY name LIMIT 1 OFFSET ?3", .identifier(parent),
            .bytes(after), .count(count)
        ) { $0.name(0).bytes }
        var shown: [UInt8]?
        if let folder = try folder(for: parent) {
            shown = try connection.first(
                "SELECT name FROM entry WHERE parent = ?1 AND name > ?2 ORDER BY name LIMIT 1 OFFSET ?3", .id(folder),
                .bytes(after), .count(count)
            ) { $0.name(0).bytes }
        }
        let last = [synced, shown].compactMap { $0 }.min { $0.lexicographicallyPrecedes($1) }
        return NameSpan(after: after, last: last ?? NameSpan.all.last)
    }

    /// Looks at one of them.
    package func hasSyncedChildren(of parent: ItemIdentifier) throws(Failure) -> Bool {
        if try connection.exists("SELECT 1 FROM synced WHERE parent = ?1 LIMIT 1", .identifier(parent)) { return true }
        return try hasListedChildren(of: parent)
    }

    /// Whether a folder here is `other` or somewhere below it.
    package func isInside(_ folder: NodeID, _ other: NodeID) throws(Failure) -> Bool {
        var current = folder
        // No real path is this deep.
        for _ in 0..<4096 {
            if current == other { return true }
            guard current != .root, let parent = try entries(of: current).first?.parent else { return false }
            current = parent
        }
        return true
    }

    /// Whether an entry, wherever it is, stands for an item that was last agreed to be in this folder.
    package func hasBoundChildren(of parent: ItemIdentifier) throws(Failure) -> Bool {
        if try hasListedChildren(of: parent) { return true }
        return try connection.exists(
            """
            SELECT 1 FROM synced WHERE parent = ?1
                AND EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier) LIMIT 1
            """, .identifier(parent))
    }

    /// The folders that were last agreed to be in this one and that no entry stands for.
    package func syncedSubfolders(of parent: ItemIdentifier) throws(Failure) -> [ItemIdentifier] {
        try connection.all(
            """
            SELECT identifier FROM synced WHERE parent = ?1 AND kind = ?2
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier)
            """, .identifier(parent), .integer(Int64(NodeKind.folder.rawValue))
        ) { ItemIdentifier($0.text(0)) }
    }

    /// nil means "as synced".
    package func remote(_ identifier: ItemIdentifier) throws(Failure) -> RemoteState? {
        try connection.first("SELECT * FROM remote WHERE identifier = ?1", .identifier(identifier)) { RemoteState($0) }
    }

    /// nil means "as synced". An item keeps its place among the `divergences` when its state changes again.
    package func setRemote(_ identifier: ItemIdentifier, _ state: RemoteState?) throws(Failure) {
        switch state {
        case nil:
            try store.change("DELETE FROM remote WHERE identifier = ?1", .identifier(identifier))
        case .deleted:
            try store.change(
                """
                INSERT INTO remote (is_deleted, identifier) VALUES (1, ?1)
                ON CONFLICT (identifier) DO UPDATE SET is_deleted = 1, parent = NULL, name = NULL, kind = NULL, size = NULL,
                    mode = NULL, owner = NULL, owner_group = NULL, modification_time = NULL, version = NULL, target = NULL
                """, .identifier(identifier))
        case .present(let item):
            precondition(item.identifier == identifier, "the item \(item.identifier) is not stored under \(identifier)")
            try store.change(
                """
                INSERT INTO remote VALUES (NULL, 0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                ON CONFLICT (identifier) DO UPDATE SET is_deleted = 0, parent = ?2, name = ?3, kind = ?4, size = ?5, mode = ?6,
                    owner = ?7, owner_group = ?8, modification_time = ?9, version = ?10, target = ?11
                """
            ) { item.bindAll(to: &$0) }
        }
    }

    /// What the provider has in a folder, at the names of `span`, by all that is known: the synced tree with the differences
    /// applied. Ordered by name bytes.
    package func remoteChildren(of parent: ItemIdentifier, in span: NameSpan = .all) throws(Failure) -> [Item] {
        let others = try connection.all(
            "SELECT * FROM remote WHERE parent = ?1 AND is_deleted = 0 AND name > ?2 AND name <= ?3", .identifier(parent),
            .bytes(span.after), .bytes(span.last)
        ) {
            Item($0, from: 2)
        }
        var items = try syncedChildren(of: parent, in: span).map(\.item)
        if try connection.exists("SELECT 1 FROM remote LIMIT 1") {
            let same = items
            items = []
            for item in same where try remote(item.identifier) == nil { items.append(item) }
        }
        if others.isEmpty { return items }
        items += others
        return items.sorted { $0.name < $1.name }
    }

    /// The item that was last known at this place of the provider, also when it is believed gone; nil when there was none.
    package func knownItem(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> Item? {
        let remote = try connection.first(
            "SELECT * FROM remote WHERE parent = ?1 AND name = ?2 AND is_deleted = 0 LIMIT 1", .identifier(parent), .name(name)
        ) { Item($0, from: 2) }
        if let remote { return remote }
        let row = try connection.first(
            "SELECT * FROM synced WHERE parent = ?1 AND name = ?2 LIMIT 1", .identifier(parent), .name(name)
        ) { SyncedItem($0) }
        if let row { return row.item }
        guard let folder = try folder(for: parent), let entry = try entry(in: folder, named: name),
            let identifier = entry.identifier
        else { return nil }
        return try listedAsSynced(identifier)?.item
    }

    /// Items whose remote state differs from the synced one, oldest first: those numbered after `sequence`.
    package func divergences(
        after sequence: Int64 = 0, limit: Int
    ) throws(Failure) -> [(sequence: Int64, identifier: ItemIdentifier, state: RemoteState)] {
        try connection.all(
            "SELECT * FROM remote WHERE sequence > ?1 ORDER BY sequence LIMIT ?2", .integer(sequence), .count(limit)
        ) { row in
            (row.integer(0), ItemIdentifier(row.text(2)), RemoteState(row))
        }
    }

    /// The provider's path of an item: names from the root by the remote tree; nil when the item or a folder above it is
    /// unknown or deleted there. Empty for the root, which the setting `root.identifier` names.
    package func remotePath(of identifier: ItemIdentifier) throws(Failure) -> [FileName]? {
        let root = try rootIdentifier()
        var names: [FileName] = []
        var current = identifier
        // A provider's feed may show a circle for a moment; no real path is this deep.
        for _ in 0..<4096 {
            if current == root { return names.reversed() }
            let item: Item
            switch try remote(current) {
            case .present(let present): item = present
            case .deleted: return nil
            case nil:
                guard let synced = try synced(current) else { return nil }
                item = synced.item
            }
            guard let parent = item.parent else { return names.reversed() }
            names.append(item.name)
            current = parent
        }
        return nil
    }
}
