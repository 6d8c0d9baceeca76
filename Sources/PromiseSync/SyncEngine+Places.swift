import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Items that go where other items still are at the provider.

extension SyncEngine {
    /// Whether an item can be moved at the provider.
    enum Way {
        case free
        /// By an item that goes elsewhere first.
        case taken
        /// By an item that waits for this one: two names were exchanged, or more went round. One of them steps aside, here,
        /// and goes on from there once the others have moved.
        case circle(aside: Place)
    }

    /// Follows who has the place of whom. As many steps as there are items in the way, and no more than a circle has.
    func way(of item: Item, to target: Place, _ transaction: borrowing Transaction) throws(Failure) -> Way {
        var place = target
        var seen: Set<ItemIdentifier> = []
        while let holder = try transaction.boundSynced(in: place.parent, named: place.name) {
            if holder == item.identifier {
                guard !seen.isEmpty, let parent = item.parent else { return .free }
                return .circle(aside: Place(parent: parent, name: asideName()))
            }
            // What the provider says of it now, and a circle of others, are seen to elsewhere.
            guard try transaction.remote(holder) == nil, let entry = try transaction.entry(for: holder),
                seen.insert(holder).inserted
            else { break }
            guard let parent = try identifier(of: entry.parent, transaction) else { return .taken }
            let next = Place(parent: parent, name: entry.name)
            if next == place { break }
            try remind(.entry(entry.id), transaction)
            place = next
        }
        return seen.isEmpty ? .free : .taken
    }

    /// For a moment. If another machine chooses the same, the provider says that it is taken, and this is tried again.
    private func asideName() -> FileName { FileName(trusted: Array(".promisefs-moving-\(clock.now().rawValue)".utf8)) }
}
