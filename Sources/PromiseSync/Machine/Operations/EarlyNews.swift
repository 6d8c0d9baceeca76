import PromiseCore
import PromiseIndex
import PromiseProvider

/// What was made here, and was moved by others before the answer came: a listing has shown it where they brought it,
/// as something new.
enum EarlyNews {
    /// The name that was inserted for it gives way to the entry from which it was made, which follows there next.
    /// What the item is by now; nil where no other name stands for it.
    static func giveWay(
        _ item: Item, to entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        guard let other = try transaction.entry(for: item.identifier), other.id != entry.id else { return nil }
        let shown = try turn.known(item.identifier, transaction)
        // What was written there meanwhile is a file of its own.
        try Tree.removeLocal(other, depth: 0, &turn, transaction)
        return shown
    }
}
