import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// A folder that was removed here and that the provider does not remove, as something is in it. What
/// is known here is on its way out, and is waited for. What was never seen here brings the folder
/// back, with all folders above it: others work in it.
enum Reviving {
    /// Has the provider asked for what is in a removed folder: one page, as what is in it goes or
    /// brings the folder back, and then the folder is tried again.
    static func lookInto(
        _ folder: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard turn.memory.questions.asked[folder] == nil,
            try turn.known(folder, transaction)?.kind == .folder,
            let reference = try turn.reference(to: folder, transaction)
        else { return }
        Asking.note(folder, &turn)
        turn.act(.call(.lookInto(reference, operationCount: turn.memory.operations.count)))
    }

    /// What others have put into it shows, whatever keeps the folder from going: ever more rarely, and not of
    /// thousands of folders at once, as what is asked of them keeps other questions waiting.
    static func lookAfterRefusal(
        _ folder: ItemIdentifier, attempts: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard attempts & (attempts - 1) == 0, turn.memory.questions.asked.count < askedMax else { return }
        try lookInto(folder, &turn, transaction)
    }

    private static let askedMax = 16

    static func lookedInto(
        _ folder: ItemIdentifier, _ result: Result<[Item], ProviderError>, since count: Int,
        _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.questions.asked[folder] = nil }
        var items: [Item] = []
        switch result {
        case .success(let found): items = found
        case .failure(let problem): turn.judge(problem)
        }
        guard try transaction.entry(for: folder) == nil, try transaction.synced(folder) != nil
        else { return }
        var isWanted = false
        for listed in items {
            let item = try turn.identified(listed, in: folder, transaction)
            if turn.memory.operations.isNewer(item, in: folder, than: count) { continue }
            if try isNews(item, &turn, transaction) { isWanted = true }
        }
        // Without a path it has no end above it to begin from.
        guard isWanted, try turn.reference(to: folder, transaction) != nil,
            try bringBack(folder, &turn, transaction) != nil
        else { return }
        turn.log(.notice, "a folder deleted here came back: it holds something new at the provider")
    }

    /// What is known is looked at where it is now, and told of if it was removed here.
    private static func isNews(
        _ item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let synced = try transaction.synced(item.identifier)
        let isShown = try transaction.entry(for: item.identifier) != nil
        if synced == nil && !isShown {
            if try turn.recognize(item, transaction) { return false }
            guard try Telling.mayBeRemoved(item, turn, transaction) else { return true }
            try transaction.setRemote(item.identifier, .present(item))
            try turn.remind(.deletion(item.identifier), transaction)
            return false
        }
        try turn.observe(item, synced: synced, transaction)
        if !isShown { try turn.remind(.deletion(item.identifier), transaction) }
        return false
    }

    /// The folder here, with those above it; nil when the provider has it no more. What is in it is
    /// listed when somebody looks.
    private static func bringBack(
        _ folder: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> NodeID? {
        if let node = try turn.node(for: folder, transaction) { return node }
        if case .deleted? = try transaction.remote(folder) { return nil }
        // A path has an end: there is a reference to it.
        guard let item = try turn.known(folder, transaction), let above = item.parent,
            let parent = try bringBack(above, &turn, transaction)
        else { return nil }
        let taken = try transaction.entry(in: parent, named: item.name)
        if let taken, try adopt(item, by: taken, &turn, transaction) { return taken.node }
        var name = item.name
        if taken != nil { name = try Tree.freeConflictName(for: name, in: parent, &turn, transaction) }
        let entry = try Tree.insertPlaceholder(item, in: parent, named: name, &turn, transaction)
        try transaction.deletePending(.deletion(folder))
        if taken != nil { try turn.remind(.entry(entry.id), transaction) }
        turn.notices.noteAppeared(name, in: parent)
        return entry.node
    }

    /// A folder made here where one was removed is that folder again, with what others have put
    /// into it.
    static func adopt(
        _ item: Item, by entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard item.kind == .folder, entry.identifier == nil, !entry.isExcluded,
            var node = try transaction.node(entry.node), node.kind == .folder,
            let agreed = try transaction.synced(item.identifier),
            try transaction.remote(item.identifier) == nil
        else { return false }
        // Our own deletion may have been carried out without an answer.
        node.succeed(agreed.edits)
        try transaction.update(node)
        var entry = entry
        entry.identifier = item.identifier
        try transaction.update(entry)
        try transaction.deletePending(.deletion(item.identifier))
        try turn.remind(.entry(entry.id), transaction)
        try turn.unblock(entry.node, transaction)
        turn.noteMade(item.identifier)
        return true
    }

    /// A removed folder goes when what is in it has gone: that is not forgotten, whatever has
    /// become of it.
    static func remindOfChildren(
        of folder: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let countMax = 16
        guard let span = try transaction.nameSpan(of: folder, after: nil, count: countMax) else {
            return
        }
        for child in try transaction.syncedChildren(of: folder, in: span) {
            if let entry = try transaction.entry(for: child.item.identifier) {
                try turn.remind(.entry(entry.id), transaction)
            } else {
                try turn.remind(.deletion(child.item.identifier), transaction)
            }
        }
    }
}
