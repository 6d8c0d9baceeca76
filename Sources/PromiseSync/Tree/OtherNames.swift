import PromiseCore
import PromiseIndex

/// The names of a node besides the one that others changed. Each is an item of its own at the provider, which
/// knows nothing of links: what the node took from one of them is an edit of the others.
enum OtherNames {
    static func remind(
        besides entry: Entry, _ turn: Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for other in try transaction.entries(of: entry.node)
        where other.id != entry.id && !other.isExcluded {
            try turn.remind(.entry(other.id), transaction)
        }
    }
}
