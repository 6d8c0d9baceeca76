import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// A folder that was removed here and that the provider does not remove, as something is in it. What is known here is on its way
// out, and is waited for. What was never seen here brings the folder back, with all folders above it: others work in it.

extension SyncEngine {
    /// Looks at what is in a removed folder. One page: what is in it goes or brings the folder back, and then the folder is
    /// tried again.
    func lookInto(_ folder: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) {
        guard !state.verifying.contains(folder), try known(folder, transaction)?.kind == .folder,
            let reference = try reference(to: folder, transaction)
        else { return }
        let count = state.operationCount
        state.verifying.insert(folder)
        Task { [provider, mailbox] in
            var items: [Item] = []
            do throws(ProviderError) {
                items = try await provider.enumerateItems(in: reference, page: nil).items
            } catch {
                mailbox.post { [error] in $0.judge(error) }
            }
            mailbox.post { [items] in $0.found(items, inRemoved: folder, since: count) }
        }
    }

    private func found(_ items: [Item], inRemoved folder: ItemIdentifier, since count: Int) {
        state.verifying.remove(folder)
        var notices = Notices()
        do throws(Failure) {
            try index.write { transaction throws(Failure) in
                guard try transaction.entry(for: folder) == nil, try transaction.synced(folder) != nil else { return }
                var isWanted = false
                for listed in items {
                    let item = try identified(listed, in: folder, transaction)
                    if isNewer(item, in: folder, than: count) { continue }
                    if try isNews(item, transaction) { isWanted = true }
                }
                // Without a path it has no end above it to begin from.
                guard isWanted, try reference(to: folder, transaction) != nil,
                    try bringBack(folder, &notices, transaction) != nil
                else { return }
                logger.notice("a folder deleted here came back: it holds something new at the provider")
            }
        } catch {
            logger.error("a folder could not be brought back", metadata: ["reason": "\(error.message)"])
        }
        send(notices)
    }

    /// What is known is looked at where it is now, and told of if it was removed here.
    private func isNews(_ item: Item, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        let synced = try transaction.synced(item.identifier)
        let isShown = try transaction.entry(for: item.identifier) != nil
        if synced == nil && !isShown { return try !recognize(item, transaction) }
        try observe(item, synced: synced, transaction)
        if !isShown { try remind(.deletion(item.identifier), transaction) }
        return false
    }

    /// The folder here, with those above it; nil when the provider has it no more. What is in it is listed when somebody looks.
    private func bringBack(
        _ folder: ItemIdentifier, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> NodeID? {
        if let node = try node(for: folder, transaction) { return node }
        if case .deleted? = try transaction.remote(folder) { return nil }
        // A path has an end: there is a reference to it.
        guard let item = try known(folder, transaction), let above = item.parent,
            let parent = try bringBack(above, &notices, transaction)
        else { return nil }
        let taken = try transaction.entry(in: parent, named: item.name)
        if let taken, try adopt(item, by: taken, transaction) { return taken.node }
        var name = item.name
        if taken != nil { name = try freeConflictName(for: name, in: parent, transaction) }
        let entry = try insertPlaceholder(item, in: parent, named: name, transaction)
        try transaction.deletePending(.deletion(folder))
        if taken != nil { try remind(.entry(entry.id), transaction) }
        notices.noteAppeared(name, in: parent)
        return entry.node
    }

    /// A folder made here where one was removed is that folder again, with what others have put into it.
    func adopt(_ item: Item, by entry: Entry, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard item.kind == .folder, entry.identifier == nil, !entry.isExcluded,
            var node = try transaction.node(entry.node), node.kind == .folder,
            let agreed = try transaction.synced(item.identifier), try transaction.remote(item.identifier) == nil
        else { return false }
        // Our own deletion may have been carried out without an answer.
        node.succeed(agreed.edits)
        try transaction.update(node)
        var entry = entry
        entry.identifier = item.identifier
        try transaction.update(entry)
        try transaction.deletePending(.deletion(item.identifier))
        try remind(.entry(entry.id), transaction)
        try unblock(entry.node, transaction)
        noteMade(item.identifier)
        return true
    }

    /// A removed folder goes when what is in it has gone: that is not forgotten, whatever has become of it.
    func remindOfChildren(of folder: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) {
        let countMax = 16
        guard let span = try transaction.nameSpan(of: folder, after: nil, count: countMax) else { return }
        for child in try transaction.syncedChildren(of: folder, in: span) {
            if let entry = try transaction.entry(for: child.item.identifier) {
                try remind(.entry(entry.id), transaction)
            } else {
                try remind(.deletion(child.item.identifier), transaction)
            }
        }
    }
}
