package import PromiseCore

// The search of names. The trigram index is kept out of the mutation path: `catchUpSearch` brings it up from the change
// feed while nothing else happens, and a search looks through the names that it has not reached yet one by one, so an
// answer is never stale.
//
// A row of `name_search` has the node's id and all its names, with a `/`, which no name contains, before, between and behind
// them: `/name/` finds the one that is just that. Names are there as `[c]` folds them, as the tokenizer's own folding of
// case keeps each character one. The setting
// `search.change` is the last change that the index has seen. While the index is built anew, because the feed was pruned
// beyond that, the setting `search.rebuild` says which node is done; rows of nodes behind that are
// old.

extension Transaction {
    /// Entries whose name contains `text`, by the full-text index of names when it has three characters or more; a shorter
    /// one looks through every name. Without regard to case.
    package func search(names text: String, limit: Int) throws(Failure) -> [Entry] {
        // No name contains these, and `/` separates the names of the index.
        if text.isEmpty || limit <= 0 || text.utf8.contains(0x2F) || text.utf8.contains(0) { return [] }
        let matcher = NameMatcher(text)
        let position = try searchPosition()
        guard matcher.isIndexable, !position.isRebuilding else { return try NameScan.entries(matcher, limit, self) }

        var seen: Set<EntryID> = []
        var result: [Entry] = []
        func take(_ entry: Entry) {
            // A node's other names, and names it no longer has, do not match.
            if result.count < limit, matcher.matches(entry.name), seen.insert(entry.id).inserted { result.append(entry) }
        }
        let phrase = NameMatcher.phrase(matcher.folded)
        try connection.forEach(
            "SELECT entry.* FROM name_search JOIN entry ON entry.node = name_search.rowid WHERE name_search MATCH ?1",
            [.text(phrase)]
        ) { row in
            take(Entry(row))
            return result.count < limit
        }
        if result.count >= limit { return result }
        // Names one by one by their nodes take longer than all there are in a row, when they are many.
        if try NameScan.isShorter(than: position.change, self) { return try NameScan.entries(matcher, limit, self) }
        try connection.forEach(
            """
            SELECT entry.* FROM change CROSS JOIN entry ON entry.node BETWEEN change.node AND change.node + change.count - 1
            WHERE change.sequence > ?1 AND name_may_contain(entry.name, ?2) ORDER BY entry.id
            """, [.integer(position.change), .bytes(matcher.bytes)]
        ) { row in
            guard result.count < limit else { return false }
            if row.withBytes(2, { matcher.matches($0) }) { take(Entry(row)) }
            return true
        }
        return result
    }

    func searchPosition() throws(Failure) -> (change: Int64, pruned: Int64, isRebuilding: Bool) {
        let change = try setting("search.change").flatMap { Int64($0) } ?? 0
        let pruned = try setting("change.pruned").flatMap { Int64($0) } ?? 0
        let isHalfBuilt = try setting("search.rebuild") != nil
        return (change, pruned, pruned > change || isHalfBuilt)
    }

    /// Brings the trigram index a step further; false when it is up to date. To be called again
    /// until then, by bodies of their own: each holds the lock for a moment.
    package func indexSomeNames() throws(Failure) -> Bool {
        let position = try searchPosition()
        if position.isRebuilding { return try NameIndexing.rebuildSome(position.change, self) }
        let changes = try connection.all(
            "SELECT sequence, node, count FROM change WHERE sequence > ?1 ORDER BY sequence LIMIT 300", .integer(position.change)
        ) { (sequence: $0.integer(0), nodes: $0.unsigned(1)..<$0.unsigned(1) + $0.unsigned(2)) }
        var nodes: Set<NodeID> = []
        var done: Int64?
        for change in changes where nodes.count < 300 {
            nodes.formUnion(change.nodes.map { NodeID($0) })
            done = change.sequence
        }
        guard let done else { return false }
        for node in nodes { try NameIndexing.renew(node, self) }
        try setSetting("search.change", "\(done)")
        return true
    }
}
