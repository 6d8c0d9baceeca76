package import PromiseCore

// What was sent to the provider and not yet answered.

extension Transaction {
    /// Of one item or place so many are kept: while no outcome is known each of several tries may have taken effect.
    private static let sentCountMax = 8

    /// To be stored before it is sent. Of too many of an item, or of a place where there is no item, one gives
    /// way that was tried again since, or else the oldest: a refused change that is tried for long does not put
    /// out another one, which may have taken effect.
    package func insertSent(_ sent: SentChange) throws(Failure) -> SentID {
        try store.change(
            """
            INSERT INTO sent VALUES (
                (SELECT coalesce(max(id), 0) + 1 FROM sent), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """
        ) { sent.bindAll(to: &$0) }
        let id = try connection.first("SELECT max(id) FROM sent") { $0.integer(0) } ?? 0
        var known: [(id: SentID, sent: SentChange)]
        if let item = sent.item {
            known = try sentChanges(of: item)
        } else {
            known = try sentChanges(to: sent.parent, sent.name).filter { $0.sent.item == nil }
        }
        while known.count > Transaction.sentCountMax {
            let again = known.indices.first { old in known[(old + 1)...].contains { $0.sent == known[old].sent } }
            try deleteSent(known.remove(at: again ?? 0).id)
        }
        return SentID(id)
    }

    /// Anything at all.
    package func hasSent() throws(Failure) -> Bool { try connection.exists("SELECT 1 FROM sent LIMIT 1") }

    package func sent(_ id: SentID) throws(Failure) -> SentChange? {
        try connection.first("SELECT * FROM sent WHERE id = ?1", .integer(id.rawValue)) { SentChange($0) }
    }

    /// Oldest first.
    package func sentChanges(of item: ItemIdentifier) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try connection.all("SELECT * FROM sent WHERE item = ?1 ORDER BY id", .identifier(item)) { row in
            (SentID(row.integer(0)), SentChange(row))
        }
    }

    /// Those that lead to a place: of new items, and of moved ones. Oldest first.
    package func sentChanges(
        to parent: ItemIdentifier, _ name: FileName
    ) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try connection.all(
            "SELECT * FROM sent WHERE parent = ?1 AND name = ?2 AND (item IS NULL OR is_move = 1) ORDER BY id",
            .identifier(parent), .name(name)
        ) { row in (SentID(row.integer(0)), SentChange(row)) }
    }

    /// What an entry was to be made as and is not known to be. Oldest first.
    package func creationsSent(for entry: EntryID) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try connection.all("SELECT * FROM sent WHERE entry = ?1 AND item IS NULL ORDER BY id", .id(entry)) { row in
            (SentID(row.integer(0)), SentChange(row))
        }
    }

    /// What was to be made in a folder and is not known to be. Oldest first.
    package func creationsSent(to parent: ItemIdentifier) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        try connection.all("SELECT * FROM sent WHERE parent = ?1 AND item IS NULL ORDER BY id", .identifier(parent)) { row in
            (SentID(row.integer(0)), SentChange(row))
        }
    }

    /// Nothing happens when there is none.
    package func deleteSent(_ id: SentID) throws(Failure) {
        try store.change("DELETE FROM sent WHERE id = ?1", .integer(id.rawValue))
    }

    /// `keepsMoves`: what leads the item to another place stays, as it may be there.
    package func deleteSent(of item: ItemIdentifier, keepsMoves: Bool = false) throws(Failure) {
        try store.change(
            "DELETE FROM sent WHERE item = ?1 AND is_move <= ?2", .identifier(item), .flag(!keepsMoves))
    }

    /// Whatever was to be made or moved to a place.
    package func deleteSent(to parent: ItemIdentifier, _ name: FileName) throws(Failure) {
        try store.change(
            "DELETE FROM sent WHERE parent = ?1 AND name = ?2 AND (item IS NULL OR is_move = 1)", .identifier(parent),
            .name(name))
    }

    /// The entry goes without anybody here having removed it: what was sent for it, and is not answered, is no concern of its
    /// name's any more.
    package func deleteSent(for entry: EntryID) throws(Failure) {
        try store.change("DELETE FROM sent WHERE entry = ?1", .id(entry))
    }

    /// What was sent is known by its digest. Nothing happens when it is answered already.
    package func setDigest(_ digest: String, of sent: SentID) throws(Failure) {
        try store.change(
            "UPDATE sent SET digest = ?2 WHERE id = ?1", .integer(sent.rawValue), .text(digest))
    }
}
