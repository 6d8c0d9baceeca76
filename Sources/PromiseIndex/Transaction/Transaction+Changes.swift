package import PromiseCore

// The change feed: what queries, other mounts and presenters follow, and what the search of names is caught up from.

extension Transaction {
    /// Every change of a name must be recorded, or `search` does not find it.
    package func record(_ kind: Change.Kind, node: NodeID, parent: NodeID, name: FileName?) throws(Failure) {
        try record(kind, node: node, count: 1, parent: parent, name: name)
    }

    /// A name was renamed or moved. That is two changes: whoever follows the folder it left has to know, too, and its name
    /// there.
    package func recordMove(from old: Entry, to new: Entry) throws(Failure) {
        try record(.left, node: new.node, parent: old.parent, name: old.name)
        try record(.moved, node: new.node, parent: new.parent, name: new.name)
    }

    /// A document is another node now, as when it is saved by renaming a new file over it.
    package func recordReplacement(of old: NodeID, by document: Entry) throws(Failure) {
        try record(.replaced, node: old, parent: document.parent, name: document.name)
        try record(.modified, node: document.node, parent: document.parent, name: document.name)
    }

    /// What becomes of an unresolved version: told of the document that it belongs to, under the version's name. To be called
    /// while the entry says so; nothing for an entry that is no version, or whose document has gone.
    package func recordVersion(_ kind: Change.Kind, _ version: Entry) throws(Failure) {
        guard let identifier = version.conflictsWith, let document = try entry(for: identifier) else { return }
        try record(kind, node: document.node, parent: version.parent, name: version.name)
    }

    /// Of `count` nodes of one folder, numbered one after the other from `node` on.
    func record(_ kind: Change.Kind, node: NodeID, count: Int, parent: NodeID, name: FileName?) throws(Failure) {
        try store.change(
            "INSERT INTO change VALUES (?1, ?2, ?3, ?4, ?5, ?6)", .integer(store.takeChange()), .count(kind.rawValue),
            .id(node), .id(parent), .optional(name?.bytes), .count(count))
    }

    /// After `sequence`, in order. A reader that was away for longer than the feed reaches back (`firstChange`) has missed
    /// some and looks at everything again.
    package func changes(since sequence: Int64, limit: Int) throws(Failure) -> [Change] {
        try connection.all(
            "SELECT * FROM change WHERE sequence > ?1 ORDER BY sequence LIMIT ?2", .integer(sequence), .count(limit)
        ) { Change($0) }
    }

    /// 0 before the first change.
    package func lastChange() throws(Failure) -> Int64 {
        try connection.first("SELECT max(sequence) FROM change") { $0.integer(0) } ?? 0
    }

    /// The oldest change that is still in the feed; 0 before the first change.
    package func firstChange() throws(Failure) -> Int64 {
        try connection.first("SELECT min(sequence) FROM change") { $0.integer(0) } ?? 0
    }
}

/// How far back the feed reaches.
enum ChangeFeed {
    /// Removes some of the rows beyond the newest `count`; false when there are none.
    static func prune(keeping count: Int, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        let first = try transaction.firstChange()
        let last = try transaction.lastChange() - Int64(count)
        guard first > 0, first <= last else { return false }
        let end = min(last, first + 5_000)
        try transaction.store.change("DELETE FROM change WHERE sequence <= ?1", .integer(end))
        try transaction.setSetting("change.pruned", "\(end)")
        return true
    }
}
