import PromiseCore
import PromiseIndex
import PromiseProvider

/// Giving up changes that were made here and that the provider was not told of, or refuses.
///
/// What is here counts as agreed on, and what the provider has as news: then it is followed as any news, also for those who
/// have the file open, and after a kill.
enum Reverting {
    static func wanted(
        _ subject: Pending.Subject, _ kept: Node?, _ waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        do throws(Failure) {
            guard turn.memory.operations.running[subject] == nil else {
                throw Failure(.busy, "the provider is being told of it at this moment: try again")
            }
            switch subject {
            case .deletion(let identifier): try revive(identifier, &turn, transaction)
            case .entry(let id): try giveUp(id, kept, &turn, transaction)
            }
            turn.noteDivergence()
            turn.act(.reply(waiter, .success(())))
        } catch {
            guard [.busy, .notEmpty, .stale].contains(error.code) else { throw error }
            turn.act(.reply(waiter, .failure(error)))
        }
    }

    /// It was removed here.
    private static func revive(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard try transaction.entry(for: identifier) == nil, let known = try turn.known(identifier, transaction) else {
            throw Failure(.stale, "it is not removed any more")
        }
        try transaction.deletePending(.deletion(identifier))
        // Whether the provider still has it is seen when the folder is listed, which is soon.
        try turn.forgetItem(identifier, transaction)
        try transaction.setRemote(identifier, .present(known))
        _ = try Tree.follow(identifier, depth: 0, &turn, transaction)
        if let parent = known.parent { turn.listAgain(parent, after: .zero) }
    }

    private static func giveUp(
        _ id: EntryID, _ kept: Node?, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let entry = try transaction.entry(id), let node = try transaction.node(entry.node) else {
            throw Failure(.stale, "it is gone")
        }
        let known = try entry.identifier.flatMap { identifier throws(Failure) in
            try transaction.synced(identifier)
        }
        // A program may have saved it since, or put another file in its place: nobody has that yet.
        guard !node.isEdited(since: known) || kept?.id == node.id && kept?.edits == node.edits else {
            throw Failure(.busy, "it was written to meanwhile: try again")
        }
        guard let identifier = entry.identifier, let synced = known else {
            return try unmake(entry, node, &turn, transaction)
        }
        var news = RemoteState.present(synced.item)
        if let remote = try transaction.remote(identifier) { news = remote }
        var agreed = synced.item
        agreed.parent = try turn.identifier(of: entry.parent, transaction)
        agreed.name = entry.name
        agreed.metadata = Metadata(node)
        if node.kind == .link { agreed.target = node.target }
        if node.edits != synced.edits { agreed.version = ContentVersion("given up") }
        try transaction.deleteSent(for: id)
        try transaction.deletePending(.entry(id))
        try transaction.setSynced(SyncedItem(item: agreed, edits: node.edits))
        try transaction.setRemote(identifier, news)
        _ = try Tree.follow(identifier, depth: 0, &turn, transaction)
    }

    /// It was made here.
    private static func unmake(
        _ entry: Entry, _ node: Node, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if node.kind == .folder, try transaction.hasChildren(node.id) {
            throw Failure(.notEmpty, "the folder was made here, and holds what is not given up")
        }
        try transaction.deletePending(.entry(entry.id))
        try Tree.takeAway(entry, node, &turn, transaction)
    }
}
