import Logging
import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSync
import PromiseSystem

// Files that a program has open while a change of the provider takes their name. What is written to them is somebody's work: it
// is seen before the name goes, and what comes later gets a name of its own at the last close.

extension FileSystem {
    package func noteOpenWrites(of id: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        try noteOpenWrites(of: id, countsDoubtful: false, transaction)
    }

    func noteOpenWrites(of id: NodeID, countsDoubtful: Bool, _ transaction: borrowing Transaction) throws(Failure) {
        guard let file = opens.writeFile(of: id), var node = try transaction.node(id), node.content == .whole else { return }
        let found = try WrittenFile(file, since: opens.writingSince(id), label: "filesystem.look")
        guard found.hasMoved(from: node) || countsDoubtful && found.isDoubtful(of: node) else { return }
        node.take(found.status)
        // A page that is mapped moves no time when it is written to again.
        if countsDoubtful { opens.doubtWriting(id) }
        try transaction.update(node)
        guard node.linkCount > 0 else { return }
        try markPending(namesOf: id, transaction)
        if let entry = try transaction.entries(of: id).first {
            try transaction.record(.modified, node: id, parent: entry.parent, name: entry.name)
        }
    }

    /// What is to be told of a file that got a name after its last close.
    struct Resurfaced {
        var entry: Entry
        /// The provider had no more of its content than what is here.
        var isSparse: Bool
    }

    /// Gives a node whose name the provider's changes took a name again, when it was written to since; nil when it was not.
    /// After its last close, when its writes are noted.
    func resurface(_ node: Node, _ transaction: borrowing Transaction) throws(Failure) -> Resurfaced? {
        guard let displaced = try transaction.displaced(node.id), node.edits != displaced.edits else { return nil }
        let isSparse = try transaction.makeSparse(node.id, in: content) != nil
        let parent = try shownFolder(displaced.parent, transaction) ? displaced.parent : .root
        var name = displaced.name
        // The document that took its name keeps it, whatever became of that.
        let isTaken = try transaction.entry(in: parent, named: name) != nil
        if isTaken || isSparse || displaced.conflictsWith != nil {
            name = try engine.freeConflictName(for: name, in: parent, transaction)
        }
        guard var named = try transaction.node(node.id) else { return nil }
        named.linkCount = 1
        named.isOpenForWriting = false
        named.changeTime = clock.now()
        try transaction.limitRights(of: &named, to: displaced.conflictsWith)
        try transaction.update(named)
        try transaction.deleteDisplaced(node.id)
        let entry = try transaction.insertEntry(
            in: parent, named: name, node: node.id, identifier: nil,
            isExcluded: try exclusion.covers(name, .file, in: parent, transaction), conflictsWith: displaced.conflictsWith)
        try markPending(entry, transaction)
        try transaction.record(.created, node: node.id, parent: parent, name: name)
        try transaction.recordVersion(.versionGained, entry)
        return Resurfaced(entry: entry, isSparse: isSparse)
    }

    private func shownFolder(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard let folder = try transaction.node(id) else { return false }
        return folder.kind == .folder && (id == .root || folder.linkCount > 0)
    }

    /// After the commit.
    func tell(of resurfaced: Resurfaced) {
        let entry = resurfaced.entry
        logger.notice(
            "what was written to a file after others replaced or removed it was kept", metadata: ["name": "\(entry.name)"])
        if resurfaced.isSparse {
            engine.hydrator.discard(entry.node, because: Failure(.stale, "the rest of the content is gone at the provider"))
        }
        entryChanged(in: entry.parent, named: entry.name)
        nodeChanged(entry.node, content: false)
        treeChanged([.appeared(TreePlace(entry.name, in: entry.parent))])
        engine.notePending()
    }
}
