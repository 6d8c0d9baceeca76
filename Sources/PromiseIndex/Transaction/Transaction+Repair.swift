package import PromiseCore

// What `verify` finds between the tables, mended: a sentence for each thing that was done. Nothing that somebody made here is
// given up: what hangs loose gets a name in the root folder.

extension Transaction {
    /// Mends what can be mended from the index alone. `hasContent` says of a node whether its content file is there. `keep`
    /// is called for a node that is given up while its content may be the only copy of something: it keeps the content
    /// files, durably, and returns where, for people. What it throws ends the repair with nothing changed. What programs see of
    /// it is in the feed of changes, but for attributes of the root.
    package func repair(
        now: Timestamp, hasContent: (Node) -> Bool, keep: (NodeID) throws(Failure) -> [String]
    ) throws(Failure) -> [String] {
        try store.flushNodes()
        var done: [String] = []
        // Without a root folder nothing that is in it could be reached.
        done += try RootRepair.mend(self)
        done += try RowRepair.clearMarks(self)
        done += try NameRepair.mend(now: now, self)
        done += try forgetEntriesOfNothing(keep)
        done += try nameNamelessNodes(now: now, hasContent, keep)
        // What can be reached by a second name alone cannot be reached when that has gone.
        done += try forgetSecondNamesOfFolders()
        done += try LooseEntries.attach(now: now, self)
        done += try countLinks()
        done += try RowRepair.countSubfolders(self)
        done += try forgetRowsOfNothing()
        done += try unbindUnknownItems()
        done += try RowRepair.mendRanges(self)
        done += try RowRepair.dropOfOtherKinds(keep, self)
        done += try LostNames.bringBack(self)
        let waiting = try pendingCount()
        try rebuildPending(now: now)
        let found = try pendingCount() - waiting
        if found > 0 { done.append("\(found) changes that the provider has not been told of were put in line") }
        return done
    }

    private func pendingCount() throws(Failure) -> Int {
        try connection.first("SELECT count(*) FROM pending") { Int($0.integer(0)) } ?? 0
    }

    /// The name goes, and the item it stood for comes back from the provider.
    func forget(_ entry: Entry) throws(Failure) {
        let synced = try entry.identifier.flatMap { identifier throws(Failure) in try self.synced(identifier) }
        try delete(entry.id)
        try record(.deleted, node: entry.node, parent: entry.parent, name: entry.name)
        try recordVersion(.versionLost, entry)
        guard let synced else { return }
        // Without this the missing name would look like a deletion made here.
        try deleteSynced(synced.item.identifier)
        try deleteSent(of: synced.item.identifier)
        if try remote(synced.item.identifier) == nil { try setRemote(synced.item.identifier, .present(synced.item)) }
    }

    private func forgetEntriesOfNothing(_ keep: (NodeID) throws(Failure) -> [String]) throws(Failure) -> [String] {
        let lost = try connection.all("SELECT * FROM entry WHERE node NOT IN (SELECT id FROM node)") { Entry($0) }
        var done: [String] = []
        for entry in lost {
            // What was said of the content is lost with the node: it may hold edits.
            let places = try keep(entry.node)
            try forget(entry)
            done.append("\(entry.name) stood for nothing and was removed" + RowRepair.shown(places))
        }
        return done
    }

    private func nameNamelessNodes(
        now: Timestamp, _ hasContent: (Node) -> Bool, _ keep: (NodeID) throws(Failure) -> [String]
    ) throws(Failure) -> [String] {
        let lost = try connection.all(
            """
            SELECT * FROM node
            WHERE id <> 1 AND link_count <> 0 AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.node = node.id)
            """
        ) { Node($0) }
        var names = FreeNames()
        var done: [String] = []
        for var node in lost {
            let isWorthKeeping = try node.kind == .folder ? hasChildren(node.id) : node.kind != .file || isWhole(node, hasContent)
            guard isWorthKeeping else {
                done.append(try giveUp(node, keep))
                continue
            }
            // What its version was is nobody's to say: it goes to the provider as something new.
            node.version = nil
            node.linkCount = node.kind == .folder ? max(2, node.linkCount) : 1
            try update(node)
            let name = try names.next(for: node.id, in: .root, self)
            let entry = try insertEntry(in: .root, named: name, node: node.id, identifier: nil)
            try record(.created, node: node.id, parent: .root, name: name)
            try setPending(Pending(subject: .entry(entry.id), since: now, due: now))
            done.append("node \(node.id) had no name; it is now \(name)")
        }
        return done
    }

    /// Partial content cannot have a name of its own: nobody says what the rest of it is. Which of its bytes were written here
    /// is not known either, so all of them are kept when any may have been.
    private func giveUp(_ node: Node, _ keep: (NodeID) throws(Failure) -> [String]) throws(Failure) -> String {
        let mayHoldEdits = node.content == .partial && (node.edits > 0 || node.isOpenForWriting)
        let places = mayHoldEdits ? try keep(node.id) : []
        try setRanges(of: node.id, to: ByteRangeSet())
        try delete(node.id)
        if !places.isEmpty {
            return "node \(node.id) had no name and only a part of its content; it was removed"
                + RowRepair.shown(places)
        }
        return "node \(node.id) had no name and nothing that is not at the provider; it was removed"
    }

    private func isWhole(_ node: Node, _ hasContent: (Node) -> Bool) -> Bool { node.content == .whole && hasContent(node) }

    private func forgetSecondNamesOfFolders() throws(Failure) -> [String] {
        let seconds = try connection.all(
            """
            SELECT entry.* FROM entry JOIN node ON node.id = entry.node
            WHERE node.kind = 1 AND entry.id > (SELECT min(id) FROM entry AS first WHERE first.node = node.id)
            """
        ) { Entry($0) }
        for entry in seconds { try forget(entry) }
        return seconds.map { "\($0.name) was a second name of a folder and was removed" }
    }

    private func countLinks() throws(Failure) -> [String] {
        try store.flushNodes()
        let wrong = try connection.all(
            """
            SELECT node.id, count(*) FROM node JOIN entry ON entry.node = node.id
            WHERE node.kind <> 1 GROUP BY node.id HAVING count(*) <> node.link_count
            """
        ) { ($0.node(0), UInt32(clamping: $0.integer(1))) }
        for (id, count) in wrong {
            guard var node = try node(id) else { continue }
            node.linkCount = count
            try update(node)
            try RowRepair.recordChange(of: id, self)
        }
        return wrong.map { "the names of node \($0.0) were counted again" }
    }

    private func forgetRowsOfNothing() throws(Failure) -> [String] {
        var done: [String] = []
        if try store.change("DELETE FROM attribute WHERE node NOT IN (SELECT id FROM node)") > 0 {
            done.append("extended attributes of files that are gone were removed")
        }
        if try store.change("DELETE FROM pending WHERE id > 0 AND id NOT IN (SELECT id FROM entry)") > 0 {
            done.append("pending work of names that are gone was removed")
        }
        let deletions = try store.change(
            """
            DELETE FROM pending WHERE (id > 0) <> (identifier IS NULL)
                OR id <= 0 AND identifier NOT IN (SELECT identifier FROM synced) AND identifier NOT IN (
                    SELECT identifier FROM entry JOIN node ON node.id = entry.node
                    WHERE is_as_synced = 1 AND identifier IS NOT NULL)
            """)
        if deletions > 0 { done.append("pending deletions of items that nobody knows were removed") }
        return done
    }

    /// A name whose item is in no tree is taken for new; the next look at the provider brings the two together.
    private func unbindUnknownItems() throws(Failure) -> [String] {
        let unknown = try connection.all(
            """
            SELECT * FROM entry WHERE identifier IS NOT NULL
                AND identifier NOT IN (SELECT identifier FROM synced) AND identifier NOT IN (SELECT identifier FROM remote)
                AND node NOT IN (SELECT id FROM node WHERE is_as_synced = 1)
            """
        ) { Entry($0) }
        for var entry in unknown {
            entry.identifier = nil
            try update(entry)
        }
        return unknown.map { "\($0.name) stood for an item that nobody knows; it is taken for new" }
    }
}
