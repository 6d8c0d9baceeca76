import PromiseCore
import PromiseIndex

/// Moves of ours whose answers did not come.
enum OwnMoves {
    /// Where one has led the item is where we have brought it: others have not moved it there, and a move
    /// that was made here since is told, not undone.
    static func agree(on item: Item, _ transaction: borrowing Transaction) throws(Failure) {
        let isOurs = try transaction.sentChanges(of: item.identifier).contains { known in
            known.sent.parent == item.parent && known.sent.name == item.name
        }
        guard isOurs, var agreed = try transaction.synced(item.identifier) else { return }
        (agreed.item.parent, agreed.item.name) = (item.parent, item.name)
        try transaction.setSynced(agreed)
    }

    /// The answer to what was told of the item since shows it there. To be called while it is known what was sent.
    static func agree(
        onAnswerTo operation: Operation, _ item: Item, _ turn: borrowing Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        // What a store of places answers of is where it was told of.
        guard !turn.facts.knowsByPlace, !operation.isMove, operation.identifier == item.identifier
        else { return }
        try agree(on: item, transaction)
    }

    /// At a store of places: what is seen where a move has led is the moved item, whatever was known of the place
    /// before. Nil: with this very version it was there before, and is another one.
    static func identified(
        _ item: Item, as sent: SentChange, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        guard sent.isMove, let moved = sent.item, moved != item.identifier else { return item }
        if case .present(let before)? = try transaction.remote(item.identifier), before.version == item.version {
            return nil
        }
        var own = item
        own.identifier = moved
        return own
    }

    /// A move was carried out without an answer, and what others put where the item had been was taken for its new content,
    /// perhaps by a node of its own; or what they put where it led was taken for it, by size and time. What it has is read.
    static func readBack(
        _ item: Item, _ sent: SentChange, _ shown: Entry, agreedBefore: SyncedItem?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard item.kind == .file else { return }
        if let base = sent.base, sent.isMove, item.version != base {
            return try expect(item, here: base, sent.edits, &turn, transaction)
        }
        guard sent.base == item.version, let node = try transaction.node(shown.node),
            node.edits == sent.edits || node.edits == agreedBefore?.edits,
            let version = node.version, version != item.version,
            try !node.hasVersionOfAnotherName(than: shown.id, transaction)
        else { return }
        try expect(item, here: version, node.edits, &turn, transaction)
    }

    /// Where the item is, is agreed on; of its content another version is here.
    private static func expect(
        _ item: Item, here version: ContentVersion, _ edits: UInt64, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var agreed = item
        if let known = try transaction.synced(item.identifier)?.item { agreed.takeRights(of: known) }
        agreed.version = version
        try transaction.setSynced(SyncedItem(item: agreed, edits: edits))
        try transaction.setRemote(item.identifier, .present(item))
        turn.noteDivergence()
    }
}
