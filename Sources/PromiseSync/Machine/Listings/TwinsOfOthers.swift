import PromiseCore
import PromiseIndex
import PromiseProvider

/// Others have changed the case of a name, or the form of its letters, in a store of places that
/// takes both names for one. The listing shows the new name, which was taken for a new item, and
/// misses the old one. Asked for by that, the store says what the item is called.
enum TwinsOfOthers {
    /// What was taken for a new item at the place of this one is this one. False while the store is
    /// told of it.
    static func giveWay(
        to item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard turn.facts.knowsByPlace, let parent = item.parent,
            let known = try turn.known(item.identifier, transaction),
            known.name.isTwin(of: item.name),
            let other = try transaction.knownItem(in: parent, named: item.name),
            other.identifier != item.identifier
        else { return true }
        if turn.memory.operations.isBusy(other.identifier) { return false }
        turn.explain("it is what was taken for a new item: \(other.identifier.rawValue)")
        if let entry = try transaction.entry(for: other.identifier) {
            // What was written into it here stays, as something new.
            try Tree.removeLocal(entry, depth: 0, &turn, transaction)
        }
        guard try transaction.entry(for: other.identifier) == nil else { return true }
        // Removed here, one of two names was meant, and not the item.
        try turn.forgetItem(other.identifier, transaction)
        try transaction.deletePending(.deletion(other.identifier))
        return true
    }
}
