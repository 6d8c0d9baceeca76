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
    /// other file is the document from now on. False when that is not how it went.
    func bequeath(
        _ known: SyncedItem, of entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let identifier = known.item.identifier
        guard let place = tree.leftNames.place(of: identifier, at: tree.clock.now()),
            var heir = try transaction.entry(in: place.parent, named: place.name), heir.id != entry.id, !heir.isExcluded,
            var heirNode = try transaction.node(heir.node), heirNode.kind == node.kind, isJustMade(heir, heirNode),
            try transaction.remote(identifier) == nil
        else { return false }
        if let own = heir.identifier {
            tree.lastCopies.note(heirNode)
            try tree.markPending(.deletion(own), transaction)
        }
        heir.identifier = identifier
        try transaction.update(heir)
        heirNode.succeed(try editsToCome(known, transaction))
        heirNode.pin = node.pin
        try transaction.update(heirNode)
        try tree.markPending(heir, transaction)
        try transaction.recordReplacement(of: node.id, by: heir)
        return true
    }

    /// The edits that are agreed on, or will be: what was sent, and has no answer, counts.
    func editsToCome(_ known: SyncedItem, _ transaction: borrowing Transaction) throws(Failure) -> UInt64 {
        var edits = known.edits
        for change in try transaction.sentChanges(of: known.item.identifier) { edits = max(edits, change.sent.edits) }
        return edits
    }
}
