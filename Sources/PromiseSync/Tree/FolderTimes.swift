import PromiseCore
import PromiseIndex
import PromiseProvider

/// Modification times of folders that the provider shows. On each side they also change with the
/// names in a folder, at another moment: so one is taken once all that was done in the folder here
/// has been told.
enum FolderTimes {
    /// What is in a folder may still wait to be told for this long before that is looked at again.
    private static let pause = Duration.seconds(10)

    /// False when it is not taken now; the next listing of the folder above shows it again.
    static func take(
        _ item: Item, _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard var node = try transaction.node(entry.node) else { return false }
        if try PendingInFolder.exists(node.id, item.identifier, transaction) {
            turn.note(.childrenFirst)
            try transaction.setRemote(item.identifier, nil)
            if let parent = item.parent { turn.listAgain(parent, after: pause) }
            return false
        }
        node.modificationTime = item.metadata.modificationTime
        node.changeTime = turn.now.time
        try transaction.update(node)
        try turn.agree(on: item, edits: nil, transaction)
        try transaction.record(.modified, node: node.id, parent: entry.parent, name: entry.name)
        // Who watches hears of names, as on a disk, and of no time that changes with them.
        turn.notices.nodes.append((node.id, false))
        return true
    }

    /// Others put a name into a folder or took one out, which has given it another time: where
    /// that is told it is asked for.
    static func lookAfterChange(
        in folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard folder != .root, turn.facts.hasFeed, turn.facts.keepsTimes,
            let identifier = try turn.identifier(of: folder, transaction)
        else { return }
        turn.ask(for: identifier)
    }
}
