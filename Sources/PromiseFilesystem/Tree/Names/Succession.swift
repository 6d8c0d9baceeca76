import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// Which of two files is a document after a program has saved it as a new one: the file that has its name in the end.
struct Succession {
    let tree: FileSystem

    /// The provider has not seen it, or has only because the program took longer than the upload delay.
    func isJustMade(_ entry: Entry, _ node: Node) -> Bool {
        if entry.identifier == nil { return true }
        guard node.kind == .link || (node.kind == .file && node.content == .whole && node.edits > 0) else { return false }
        return !tree.engine.isRunning(.entry(entry.id)) && LeftNames.isRecent(node.birthTime, at: tree.clock.now())
    }

    /// A document was renamed, another file took its name, and now the renamed one goes: that is how some programs save. The
    /// other file is the document from now on. Nil when that is not how it went.
    func heir(
        of entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> (entry: Entry, node: Node)? {
        guard let place = tree.leftNames.place(of: entry.id, at: tree.clock.now()),
            let heir = try transaction.entry(in: place.parent, named: place.name), heir.id != entry.id, !heir.isExcluded,
            let heirNode = try transaction.node(heir.node), heirNode.kind == node.kind, heirNode.id != node.id,
            isJustMade(heir, heirNode)
        else { return nil }
        if let identifier = entry.identifier {
            guard try transaction.synced(identifier) != nil, try transaction.remote(identifier) == nil else { return nil }
        } else if heir.identifier != nil || entry.isExcluded {
            return nil
        }
        return (heir, heirNode)
    }

    /// The document keeps its name in the index, with all that is known by that, and is where its heir was.
    func bequeath(
        _ entry: Entry, _ node: Node, to heir: (entry: Entry, node: Node), _ transaction: borrowing Transaction
    ) throws(Failure) -> Removed? {
        let removed = try tree.putUnder(entry, node, heir.entry, heir.node, transaction)
        guard let before = try transaction.entry(entry.id) else { return removed }
        var document = before
        (document.parent, document.name) = (heir.entry.parent, heir.entry.name)
        try transaction.update(document)
        try tree.markPending(document, transaction)
        try transaction.recordMove(from: before, to: document)
        return removed
    }

    /// The item that had this name until it was removed here, if the provider still has it, or the document that was renamed
    /// to a backup's name: making the name again is an edit of the same document.
    func adoptable(
        _ name: FileName, _ kind: NodeKind, in folder: NodeID, besides own: Entry? = nil,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Adopted? {
        // What was removed here and is still there waits to be deleted there.
        let areLeft = !tree.leftNames.isEmpty
        let areDeletions = try transaction.hasPendingDeletions()
        guard areLeft || areDeletions else { return nil }
        let parent = try tree.identifier(of: folder, transaction)
        let unbound = try parent.flatMap { parent throws(Failure) in
            try transaction.unboundSynced(in: parent, named: name)
        }
        if let unbound { return try adopt(unbound, kind, transaction) }
        guard areLeft else { return nil }
        if let left = try tree.leftNames.item(named: name, in: folder, parent, transaction),
            left.item.identifier != own?.identifier, let adopted = try adoptLeft(left, kind, transaction)
        {
            return adopted
        }
        guard kind == .file, let document = try tree.leftNames.unsent(named: name, in: folder, transaction),
            document.id != own?.id, document.isExcluded, document.conflictsWith == nil,
            !tree.engine.isRunning(.entry(document.id)), let backup = try tree.exclusion.backup(document, transaction)
        else { return nil }
        return Adopted(document: document, edits: backup.edits, pin: backup.pin.ifSet)
    }

    private func adopt(
        _ known: SyncedItem, _ kind: NodeKind, _ transaction: borrowing Transaction
    ) throws(Failure) -> Adopted? {
        let identifier = known.item.identifier
        guard known.item.kind == kind, try transaction.remote(identifier) == nil else { return nil }
        return Adopted(
            item: known.item, edits: try editsToCome(known, transaction),
            pin: try transaction.rememberedPin(of: identifier))
    }

    /// What had the name here: nil of what is another thing now.
    private func adoptLeft(
        _ known: SyncedItem, _ kind: NodeKind, _ transaction: borrowing Transaction
    ) throws(Failure) -> Adopted? {
        let identifier = known.item.identifier
        guard let document = try transaction.entry(for: identifier) else {
            guard try transaction.pending(.deletion(identifier)) != nil else { return nil }
            return try adopt(known, kind, transaction)
        }
        // While the provider is being told of it nobody knows what that will have been.
        guard !tree.engine.isRunning(.entry(document.id)), known.item.name != document.name,
            let backup = try tree.exclusion.backup(document, transaction),
            var adopted = try adopt(known, kind, transaction)
        else { return nil }
        (adopted.document, adopted.pin) = (document, backup.pin.ifSet)
        return adopted
    }

    /// Gives a node its name. A document that is made anew is at its place again, and what it was stays on this machine
    /// under the backup's name.
    func name(
        _ node: NodeID, at place: TreePlace, as adopted: Adopted?, isExcluded: Bool,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry {
        guard let backup = adopted?.document else {
            let entry = try transaction.insertEntry(
                in: place.parent, named: place.name, node: node, identifier: adopted?.item?.identifier,
                isExcluded: isExcluded)
            try transaction.record(.created, node: node, parent: place.parent, name: place.name)
            return entry
        }
        tree.leftNames.note(backup, isNow: node)
        try transaction.deletePending(.entry(backup.id))
        var document = backup
        (document.node, document.isExcluded) = (node, false)
        try transaction.recordReplacement(of: backup.node, by: document)
        (document.parent, document.name) = (place.parent, place.name)
        try transaction.update(document)
        try transaction.recordMove(from: backup, to: document)
        _ = try transaction.insertEntry(
            in: backup.parent, named: backup.name, node: backup.node, identifier: nil, isExcluded: true)
        try transaction.record(.created, node: backup.node, parent: backup.parent, name: backup.name)
        return document
    }

    /// Claims and presenters follow a document that is this node now, before whoever has made it goes on.
    func follow(to node: NodeID) {
        guard let former = tree.leftNames.takeFormer(of: node) else { return }
        // The change that it was noted in may have been undone, and the node's number given to another.
        let document = try? tree.index.read { transaction throws(Failure) in try transaction.entry(former.id) }
        if document?.node == node { tree.follow([former]) }
    }

    /// The edits that are agreed on, or will be: what was sent, and has no answer, counts.
    func editsToCome(_ known: SyncedItem, _ transaction: borrowing Transaction) throws(Failure) -> UInt64 {
        var edits = known.edits
        for change in try transaction.sentChanges(of: known.item.identifier) { edits = max(edits, change.sent.edits) }
        return edits
    }
}

/// What a file is that is made now: an item that the provider has still, or a document that is a backup at the moment.
struct Adopted {
    /// Nil of what the provider has never had.
    var item: Item?
    /// Its name here, where it has one.
    var document: Entry?
    var edits: UInt64
    /// Nil: as its folder says.
    var pin: Pin?
}

extension Pin {
    fileprivate var ifSet: Pin? { self == .automatic ? nil : self }
}
