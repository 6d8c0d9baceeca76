import PromiseCore
import PromiseIndex
import PromiseMigration
import PromiseProvider
import PromiseSync
import PromiseSystem

/// What this machine removed at the old storage after its domain was moved away: it waits to be removed
/// at the new one. Only what was brought just as it was removed, what the old storage does not have
/// again, and nothing that is gone there for another reason: somebody who tidies the old storage away
/// must not empty the new one.
struct LaterRemovals {
    struct Suspect {
        var removal: OwnRemoval
        var brought: MigratedItem
    }

    /// Of the index.
    let index: [UInt8]
    let items: [ItemIdentifier: MigratedItem]
    /// Where the old storage knows places only.
    let paths: [[FileName]: ItemIdentifier]?

    func suspects() throws(Failure) -> [Suspect] {
        try Index.reading(index) { transaction throws(Failure) in
            var found: [Suspect] = []
            for removal in Set(try OwnRemoval.all(transaction)) {
                let old = if let paths { paths[removal.path] } else { Optional(removal.identifier) }
                guard let brought = old.flatMap({ items[$0] }), brought.version == removal.version,
                    try transaction.entry(for: removal.identifier) == nil,
                    try transaction.synced(removal.identifier) == nil
                else { continue }
                found.append(Suspect(removal: removal, brought: brought))
            }
            // A folder before what was in it.
            return found.sorted { $0.removal.path.count < $1.removal.path.count }
        }
    }

    /// An error is no removal, and nothing is done by halves.
    static func confirmed(
        _ suspects: [Suspect], by old: any Provider
    ) async throws(ProviderError) -> [Suspect] {
        var result: [Suspect] = []
        for suspect in suspects {
            let removal = suspect.removal
            let reference = ItemReference(identifier: removal.identifier, path: removal.path)
            do throws(ProviderError) {
                _ = try await old.item(for: reference)
            } catch {
                switch error.code {
                case .notFound: result.append(suspect)
                case .stale: continue
                default: throw error
                }
            }
        }
        return result
    }

    /// As if its name had been removed here just now.
    func keep(_ gone: [Suspect]) throws(Failure) {
        if gone.isEmpty { return }
        try Index.writing(index) { transaction throws(Failure) in
            let now = SystemClock().now()
            for suspect in gone {
                let (removal, brought) = (suspect.removal, suspect.brought)
                guard let name = removal.path.last, try transaction.remotePath(of: removal.parent) != nil
                else { continue }
                let item = Item(
                    identifier: removal.identifier, parent: removal.parent, name: name,
                    kind: brought.kind, size: brought.size, metadata: brought.metadata,
                    version: brought.version, target: brought.target)
                try transaction.setSynced(SyncedItem(item: item, edits: 0))
                try transaction.setPending(
                    Pending(subject: .deletion(removal.identifier), since: now, due: now))
            }
        }
    }
}

extension Index {
    /// Of a domain that is not mounted: opened for this.
    static func reading<Answer>(
        _ path: [UInt8], _ body: (borrowing Transaction) throws(Failure) -> Answer
    ) throws(Failure) -> Answer {
        let index = try Index(path: path)
        defer { index.close() }
        return try index.read(body)
    }

    /// The same.
    static func writing<Answer>(
        _ path: [UInt8], _ body: (borrowing Transaction) throws(Failure) -> Answer
    ) throws(Failure) -> Answer {
        let index = try Index(path: path)
        defer { index.close() }
        return try index.write(body)
    }
}
