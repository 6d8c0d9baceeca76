import PromiseCore
import PromiseIndex
import PromiseProvider

/// Modification times of folders that the provider shows. On each side they also change with the
/// names in a folder, at another moment: so one is taken once all that was done in the folder here
/// has been told.
enum FolderTimes {
    /// What is in a folder may still wait to be told for this long before that is looked at again, unless it is told before.
    private static let pause = Duration.seconds(10)
    /// Of more, the times are taken at the next look.
    private static let awaitedMax = 1_000

    /// False when it is not taken now; a listing of the folder above shows it again, when what is in it has been told.
    static func take(
        _ item: Item, _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard var node = try transaction.node(entry.node) else { return false }
        if try PendingInFolder.exists(node.id, item.identifier, transaction) {
            turn.note(.childrenFirst)
            try transaction.setRemote(item.identifier, nil)
            if let parent = item.parent {
                turn.listAgain(parent, after: pause, isLeisurely: true)
                if turn.memory.listings.timesAwaited.count < awaitedMax {
                    turn.remember { $0.listings.timesAwaited[item.identifier] = parent }
                }
            }
            return false
        }
        turn.remember { $0.listings.timesAwaited[item.identifier] = nil }
        node.modificationTime = item.metadata.modificationTime
        node.changeTime = turn.now.time
        try transaction.update(node)
        try turn.agree(on: item, edits: nil, transaction)
        try transaction.record(.modified, node: node.id, parent: entry.parent, name: entry.name)
        // Who watches hears of names, as on a disk, and of no time that changes with them.
        turn.notices.nodes.append((node.id, false))
        return true
    }

    /// The last of what was to be told in a folder has been: whoever waits for that finds its time right.
    static func told(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if turn.memory.listings.timesAwaited.isEmpty { return }
        for place in operation.places {
            guard let above = turn.memory.listings.timesAwaited[place.parent] else { continue }
            if let folder = try turn.knownFolder(place.parent, transaction),
                try PendingInFolder.exists(folder, place.parent, transaction)
            {
                continue
            }
            turn.remember { $0.listings.timesAwaited[place.parent] = nil }
            turn.listAgain(above, after: .zero)
        }
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
