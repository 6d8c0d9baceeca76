import PromiseCore
import PromiseIndex
import PromiseMigration
import PromiseProvider
import PromiseSync
import PromiseSystem

/// What this machine told the old storage after its domain was moved away: nobody has brought that to
/// the new one. It is made a change of what was brought, and so waits to be told there.
struct LaterChanges {
    /// An item that is here as agreed on, and not as it was brought.
    struct Suspect {
        var entry: EntryID
        var synced: SyncedItem
        var reference: ItemReference
        /// As it was brought.
        var brought: MigratedItem?
    }

    /// Of the index.
    let index: [UInt8]
    let items: [ItemIdentifier: MigratedItem]
    /// Where the old storage knows places only.
    let paths: [[FileName]: ItemIdentifier]?

    // MARK: Finding

    /// It may as well be that others had changed it before, which was not heard of here.
    func suspects() throws(Failure) -> [Suspect] {
        try Index.reading(index) { transaction throws(Failure) in
            var found: [Suspect] = []
            var waiting: [NodeID] = [.root]
            while let folder = waiting.popLast() {
                for entry in try transaction.children(of: folder) {
                    if try transaction.node(entry.node)?.kind == .folder { waiting.append(entry.node) }
                    if let one = try suspect(entry, transaction) { found.append(one) }
                }
            }
            return found
        }
    }

    private func suspect(
        _ entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Suspect? {
        guard let identifier = entry.identifier, !entry.isExcluded,
            let synced = try transaction.synced(identifier),
            let path = try transaction.remotePath(of: identifier)
        else { return nil }
        let old = if let paths { paths[path] } else { Optional(identifier) }
        let brought = old.flatMap { items[$0] }
        if let brought, isSame(synced.item, brought) { return nil }
        return Suspect(
            entry: entry.id, synced: synced,
            reference: ItemReference(identifier: identifier, path: path), brought: brought)
    }

    private func isSame(_ item: Item, _ brought: MigratedItem) -> Bool {
        let isThere = paths != nil || item.parent == brought.parent && item.name == brought.name
        return isThere && item.version == brought.version
            && !differs(item.metadata, brought.metadata, kind: item.kind)
    }

    /// Those that the old storage has just as they are here: they came there behind the move.
    static func confirmed(
        _ suspects: [Suspect], by old: any Provider
    ) async throws(ProviderError) -> [Suspect] {
        var result: [Suspect] = []
        for suspect in suspects {
            do throws(ProviderError) {
                let found = try await old.item(for: suspect.reference)
                let item = suspect.synced.item
                if found.kind == item.kind, found.version == item.version, found.name == item.name {
                    result.append(suspect)
                }
            } catch {
                guard error.code == .notFound || error.code == .stale else { throw error }
            }
        }
        return result
    }

    // MARK: Keeping

    /// Returns where content is that only the old storage has.
    func keep(_ later: [Suspect]) throws(Failure) -> [String] {
        if later.isEmpty { return [] }
        return try Index.writing(index) { transaction throws(Failure) in
            var left: [String] = []
            for suspect in later where try !keep(suspect, transaction) {
                left.append("/" + suspect.reference.path.map(\.display).joined(separator: "/"))
            }
            return left.sorted()
        }
    }

    /// False when its content is not here.
    private func keep(
        _ suspect: Suspect, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let entry = try transaction.entry(suspect.entry),
            var node = try transaction.node(entry.node)
        else { return true }
        let agreed = suspect.synced.item
        let isOther = suspect.brought?.version != agreed.version
        if isOther, node.kind == .file, node.content != .whole { return false }
        if isOther, node.edits == suspect.synced.edits {
            node.edits += 1
            try transaction.update(node)
        }
        if let brought = suspect.brought {
            var base = suspect.synced
            (base.item.version, base.item.metadata) = (brought.version, brought.metadata)
            if node.kind == .file { base.item.size = brought.size }
            if paths == nil { (base.item.parent, base.item.name) = (brought.parent, brought.name) }
            try transaction.setSynced(base)
        }
        let now = SystemClock().now()
        if try transaction.pending(.entry(entry.id)) == nil {
            try transaction.setPending(Pending(subject: .entry(entry.id), since: now, due: now))
        }
        return true
    }
}
