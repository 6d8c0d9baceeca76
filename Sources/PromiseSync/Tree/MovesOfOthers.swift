import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// An item that another machine has moved out of the way for a moment.
enum MovesOfOthers {
    /// It stays here what it was until the other machine has moved it on. False when that has been
    /// waited for long enough.
    static func isAwaited(_ item: Item, _ turn: inout Turn) -> Bool {
        let now = turn.now.uptime
        if turn.memory.asides.isOverdue(item.name, of: item.identifier, at: now) { return false }
        let isFirst = !turn.memory.asides.isAwaited
        turn.remember { $0.asides.saw(item.name, of: item.identifier, at: now) }
        if isFirst { turn.act(.wait(AsideNames.patience, .asideDue)) }
        return true
    }

    /// What has such a name for a moment is looked at again when that has been long.
    static func due(_ turn: inout Turn) {
        let now = turn.now.uptime
        turn.remember { memory in
            memory.asides.due(at: now)
            memory.hasDivergences = true
        }
    }

    /// The other machine does not move it on, so this one does: to where it is here, or else to the name
    /// that it was on its way to. False when its folder is not known here.
    static func finish(
        _ item: Item, _ aside: AsideName, _ entry: Entry?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        turn.log(.notice, "a move that another machine did not end is ended here")
        turn.remember { $0.asides.forget(item.identifier) }
        if let entry {
            if var synced = try transaction.synced(item.identifier) {
                (synced.item.parent, synced.item.name) = (item.parent, item.name)
                try transaction.setSynced(synced)
            }
            try turn.remind(.entry(entry.id), transaction)
            return true
        }
        guard let parent = item.parent, let folder = try turn.node(for: parent, transaction),
            try transaction.node(folder)?.isPopulated == true
        else {
            try turn.forgetItem(item.identifier, transaction)
            return false
        }
        var name = aside.goal
        if try transaction.entry(in: folder, named: name) != nil {
            name = try Tree.freeConflictName(for: name, in: folder, &turn, transaction)
        }
        let made = try Tree.insertPlaceholder(item, in: folder, named: name, &turn, transaction)
        turn.notices.noteAppeared(name, in: folder)
        try turn.remind(.entry(made.id), transaction)
        return false
    }
}
