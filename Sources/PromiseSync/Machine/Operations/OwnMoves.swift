import PromiseCore
import PromiseIndex

/// Moves of ours whose answers did not come.
enum OwnMoves {
    /// Where one has led the item is where we have brought it: others have not moved it there, and a move
    /// that was made here since is told, not undone.
    static func agree(on item: Item, _ transaction: borrowing Transaction) throws(Failure) {
        let isOurs = try transaction.sentChanges(of: item.identifier).contains { known in
            known.sent.isMove && known.sent.parent == item.parent && known.sent.name == item.name
        }
        guard isOurs, var agreed = try transaction.synced(item.identifier) else { return }
        (agreed.item.parent, agreed.item.name) = (item.parent, item.name)
        try transaction.setSynced(agreed)
    }
}
