package import PromiseCore

// What the provider has not been told. A row's id is its entry's id, or a negative number for a deletion.

extension Transaction {
    package func pending(_ subject: Pending.Subject) throws(Failure) -> Pending? {
        switch subject {
        case .entry(let entry):
            try connection.first("SELECT * FROM pending WHERE id = ?1", .id(entry)) { Pending($0) }
        case .deletion(let identifier):
            try connection.first("SELECT * FROM pending WHERE identifier = ?1", .identifier(identifier)) { Pending($0) }
        }
    }

    /// Inserts or replaces.
    package func setPending(_ pending: Pending) throws(Failure) {
        switch pending.subject {
        case .entry(let entry):
            precondition(entry.rawValue > 0, "an entry's id is positive: \(entry)")
            store.touch(entry)
            try store.change(
                """
                INSERT INTO pending VALUES (?1, NULL, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (id) DO UPDATE SET since = ?2, due = ?3, attempts = ?4, error = ?5, message = ?6
                """
            ) { binder in
                binder.id(entry)
                pending.bindFacts(to: &binder)
            }
        case .deletion(let identifier):
            try store.change(
                """
                INSERT INTO pending VALUES ((SELECT min(coalesce(min(id), 0), 0) - 1 FROM pending), ?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (identifier) WHERE identifier IS NOT NULL
                DO UPDATE SET since = ?2, due = ?3, attempts = ?4, error = ?5, message = ?6
                """
            ) { binder in
                binder.identifier(identifier)
                pending.bindFacts(to: &binder)
            }
        }
    }

    /// Puts a row for an entry that has none; else makes it due later again, and forgets failures.
    /// What has waited too long keeps both.
    package func renewPending(_ entry: EntryID, _ renewal: PendingRenewal) throws(Failure) {
        precondition(entry.rawValue > 0, "an entry's id is positive: \(entry)")
        store.touch(entry)
        try store.change(PendingRenewal.statement) { binder in
            binder.id(entry)
            renewal.bind(to: &binder)
        }
    }

    /// Whether any item waits to be deleted at the provider.
    package func hasPendingDeletions() throws(Failure) -> Bool {
        try connection.exists("SELECT 1 FROM pending WHERE id < 0 LIMIT 1")
    }

    /// Nothing happens when there is none.
    package func deletePending(_ subject: Pending.Subject) throws(Failure) {
        switch subject {
        case .entry(let entry):
            store.touch(entry)
            try store.change("DELETE FROM pending WHERE id = ?1", .id(entry))
        case .deletion(let identifier):
            try store.change("DELETE FROM pending WHERE identifier = ?1", .identifier(identifier))
            try store.change("DELETE FROM setting WHERE key = ?1", .text("pin." + identifier.rawValue))
        }
    }

    /// The pin of an item whose name was removed, until the deletion is done with: made again it is the same document.
    package func rememberPin(_ pin: Pin, of identifier: ItemIdentifier) throws(Failure) {
        guard pin != .automatic else { return }
        try setSetting("pin." + identifier.rawValue, "\(pin.rawValue)")
    }

    /// What `rememberPin` was told; nil: nothing.
    package func rememberedPin(of identifier: ItemIdentifier) throws(Failure) -> Pin? {
        try setting("pin." + identifier.rawValue).flatMap { Int($0) }.flatMap { Pin(rawValue: $0) }
    }

    /// Due at `now`, oldest due first. `early`: only what waits since then, or by a clock that was set back.
    package func duePending(at now: Timestamp, waitingSince early: Timestamp, limit: Int) throws(Failure) -> [Pending] {
        let query: StaticString =
            "SELECT * FROM pending WHERE due <= ?1 AND (since <= ?2 OR since > ?1) ORDER BY due, id LIMIT ?3"
        return try connection.all(query, .time(now), .time(early), .count(limit)) { Pending($0) }
    }

    package func nextPendingDue() throws(Failure) -> Timestamp? {
        try connection.first("SELECT due FROM pending ORDER BY due LIMIT 1") { $0.time(0) }
    }

    /// Oldest first. Looks at every row.
    package func allPending(limit: Int) throws(Failure) -> [Pending] {
        try connection.all("SELECT * FROM pending ORDER BY since, id LIMIT ?1", .count(limit)) { Pending($0) }
    }

    /// Makes every pending row due now, e.g. when the provider is back or somebody waits, or those that are due after `limit`.
    package func makePendingDue(at now: Timestamp, after limit: Timestamp? = nil) throws(Failure) {
        try store.change("UPDATE pending SET due = ?1 WHERE due > ?2", .time(now), .time(limit ?? now))
    }

    /// Puts a pending row for every difference between the local and the synced tree that has none: the queue can be
    /// rebuilt. Looks at every entry and every synced item. A sentence for each item whose name is lost: it comes back from
    /// the provider, as whoever removes something puts it in line himself (`LostNames`).
    @discardableResult
    package func rebuildPending(now: Timestamp) throws(Failure) -> [String] {
        try store.flushNodes()
        let root = try rootIdentifier()
        try rebuildPendingEntries(now, root)
        let nameless = try connection.all(
            """
            SELECT identifier FROM synced
            WHERE parent IS NOT NULL AND identifier IS NOT ?1
                AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.identifier = synced.identifier)
                AND NOT EXISTS (SELECT 1 FROM remote WHERE remote.identifier = synced.identifier)
                AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.identifier = synced.identifier)
                -- What is not listed here is not deleted either. A folder that is deleted itself takes its items along.
                AND NOT EXISTS (
                    SELECT 1 FROM node WHERE is_populated = 0 AND node.id = CASE WHEN synced.parent = ?1 THEN 1
                        ELSE (SELECT entry.node FROM entry WHERE entry.identifier = synced.parent) END)
            """, .identifier(root)
        ) { ItemIdentifier($0.text(0)) }
        if nameless.isEmpty { return [] }
        let lost = try LostNames.bringBack(self)
        for identifier in nameless where try synced(identifier) != nil {
            try setPending(Pending(subject: .deletion(identifier), since: now, due: now))
        }
        return lost
    }

    /// Names without an item, and items that were renamed, moved, edited or changed in mode, owner, time or target here.
    /// What lies below an excluded folder stays here with it.
    private func rebuildPendingEntries(_ now: Timestamp, _ root: ItemIdentifier?) throws(Failure) {
        try store.change(
            """
            WITH RECURSIVE hidden (node) AS (
                SELECT node FROM entry WHERE is_excluded = 1
                UNION SELECT entry.node FROM entry JOIN hidden ON entry.parent = hidden.node)
            INSERT OR IGNORE INTO pending
            SELECT entry.id, NULL, ?1, ?1, 0, NULL, NULL
            FROM entry JOIN node ON node.id = entry.node LEFT JOIN synced ON synced.identifier = entry.identifier
            WHERE node.kind <= 2 AND node.is_as_synced = 0
                AND entry.is_excluded = 0 AND entry.parent NOT IN (SELECT node FROM hidden) AND (
                entry.identifier IS NULL OR synced.identifier IS NULL
                OR synced.parent IS NOT CASE entry.parent WHEN 1 THEN ?2 ELSE (
                    SELECT above.identifier FROM entry AS above WHERE above.node = entry.parent ORDER BY above.id LIMIT 1) END
                OR synced.name <> entry.name OR synced.kind <> node.kind OR synced.edits <> node.edits
                OR synced.mode <> node.mode OR synced.owner <> node.owner OR synced.owner_group <> node.owner_group
                OR (node.kind = 0 AND synced.modification_time <> node.modification_time)
                OR (node.kind = 2 AND synced.target IS NOT node.target))
            """, .time(now), .identifier(root))
    }
}

extension Pending {
    fileprivate func bindFacts(to binder: inout Binder) {
        binder.time(since)
        binder.time(due)
        binder.count(attempts)
        binder.optional(error?.rawValue)
        binder.optional(message)
    }
}
