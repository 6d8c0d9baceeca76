import PromiseCore
import PromiseIndex

/// Content that nobody has agreed on with an item: an edit of it.
enum UnagreedContent {
    /// Counts it as one; agreed on with the items of its other names it stays what it was.
    static func count(
        _ node: Node, of entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard node.edits == 0 else { return }
        var node = node
        node.edits = 1
        try transaction.update(node)
        for other in try transaction.entries(of: node.id) where other.id != entry.id {
            guard let identifier = other.identifier,
                var synced = try transaction.synced(identifier), synced.edits == 0
            else { continue }
            synced.edits = node.edits
            try transaction.setSynced(synced)
        }
    }
}
