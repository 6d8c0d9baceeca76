import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Items that go where other items still are at the provider.

extension Telling {
    /// How an item gets to its place at the provider.
    enum Route {
        case free(ItemPlace)
        /// By an item that goes elsewhere first.
        case taken
        /// By an item that waits for this one: two names were exchanged, or more went round. One of
        /// them steps aside, here, and goes on from there once the others have moved.
        case circle(aside: ItemPlace)
        /// The folder it goes to has to be made at the provider first.
        case homeless
    }

    static func route(
        of entry: Entry, _ item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Route {
        let asideName = AsideName(for: entry.name, &turn).fileName
        let aside = item.parent.map { ItemPlace(parent: $0, name: asideName) }
        guard let parent = try turn.identifier(of: entry.parent, transaction) else {
            // A folder that is to be made where the item still is, or where one is that waits for
            // the item.
            guard let aside, let site = try site(of: entry.parent, &turn, transaction) else {
                return .homeless
            }
            return try holder(of: site, waitsFor: item.identifier, &turn, transaction) == .itself
                ? .circle(aside: aside) : .homeless
        }
        let target = ItemPlace(parent: parent, name: entry.name)
        if let removed = try removedItem(at: target, &turn, transaction) {
            try turn.remind(.deletion(removed.identifier), transaction)
            guard try mustStepAside(for: removed, &turn, transaction) else { return .taken }
            return .circle(aside: ItemPlace(parent: parent, name: asideName))
        }
        let leaver =
            item.kind == .folder
            ? try leaver(of: item.identifier, above: parent, &turn, transaction) : nil
        var first = target
        if let leaver {
            guard let goal = try goal(of: leaver, &turn, transaction) else { return .taken }
            first = goal
        }
        switch try holder(of: first, waitsFor: item.identifier, &turn, transaction) {
        case .none: return leaver == nil ? .free(target) : .taken
        case .other: return .taken
        case .itself:
            let isThere =
                try transaction.boundSynced(in: target.parent, named: target.name)
                == item.identifier
            guard let aside, leaver != nil || !isThere else { return .free(target) }
            return .circle(aside: aside)
        }
    }

    /// A folder is to go into one that is in it at the provider. Here that one has left it, or a
    /// folder between them has: the entry of whichever it was, which goes first.
    private static func leaver(
        of folder: ItemIdentifier, above target: ItemIdentifier, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        var current = target
        // No real path is this deep.
        for _ in 0..<4096 {
            guard current != folder, try turn.isInside(current, folder, transaction),
                let entry = try transaction.entry(for: current)
            else { return nil }
            guard let parent = try turn.identifier(of: entry.parent, transaction),
                try turn.isInside(parent, folder, transaction)
            else {
                try turn.remind(.entry(entry.id), transaction)
                return entry
            }
            current = parent
        }
        return nil
    }

    /// Where an entry goes, or where the folder that has to be made for it does.
    private static func goal(
        of entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemPlace? {
        if let parent = try turn.identifier(of: entry.parent, transaction) {
            return ItemPlace(parent: parent, name: entry.name)
        }
        return try site(of: entry.parent, &turn, transaction)
    }

    /// What was removed here, and is still at this place of the provider.
    static func removedItem(
        at place: ItemPlace, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        if let synced = try transaction.unboundSynced(in: place.parent, named: place.name) {
            return synced.item
        }
        return try transaction.unboundRemote(in: place.parent, named: place.name)
    }

    /// Whether a removed folder that has the place waits for what leaves it. That may wait for
    /// whoever wants the place, e.g. a file of the folder that now has the folder's name; it does
    /// when nothing is under way.
    private static func mustStepAside(
        for removed: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard removed.kind == .folder, turn.memory.operations.running.isEmpty else { return false }
        var folders = [removed.identifier]
        // What providers say may have a circle in it for a moment.
        var seen: Set<ItemIdentifier> = []
        while let folder = folders.popLast() {
            guard seen.insert(folder).inserted else { continue }
            if try transaction.hasBoundChildren(of: folder) { return true }
            folders += try transaction.syncedSubfolders(of: folder)
        }
        return false
    }

    /// Whether an item that goes elsewhere is still where a new one is to be made: it goes first.
    /// Made before, the new one would be refused, and at a store of places one could be taken for
    /// the other.
    static func isHeld(_ place: ItemPlace, _ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool
    {
        try holder(of: place, waitsFor: nil, &turn, transaction) == .other
    }

    private enum Holder {
        case none, other, itself
    }

    /// Follows who has the place of whom. As many steps as there are items in the way, and no more
    /// than a circle has.
    private static func holder(
        of target: ItemPlace, waitsFor item: ItemIdentifier?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Holder {
        var place = target
        var seen: Set<ItemIdentifier> = []
        while let holder = try transaction.boundSynced(in: place.parent, named: place.name) {
            if holder == item { return .itself }
            // What the provider says of it now, and a circle of others, are seen to elsewhere.
            guard try transaction.remote(holder) == nil,
                let entry = try transaction.entry(for: holder), !entry.isExcluded,
                !seen.contains(holder)
            else { break }
            // It is where it belongs.
            if entry.name == place.name,
                try turn.identifier(of: entry.parent, transaction) == place.parent
            {
                break
            }
            var next = try goal(of: entry, &turn, transaction)
            if let parent = next?.parent,
                let leaver = try leaver(of: holder, above: parent, &turn, transaction)
            {
                next = try goal(of: leaver, &turn, transaction)
            }
            seen.insert(holder)
            try turn.remind(.entry(entry.id), transaction)
            guard let next else { return .other }
            place = next
        }
        return seen.isEmpty ? .none : .other
    }

    /// Where the uppermost of the folders at and above `folder` that the provider does not have is
    /// to be made.
    private static func site(
        of folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemPlace? {
        var current = folder
        // No real path is this deep.
        for _ in 0..<4096 {
            guard let entry = try transaction.entries(of: current).first, !entry.isExcluded else {
                return nil
            }
            if let parent = try turn.identifier(of: entry.parent, transaction) {
                return ItemPlace(parent: parent, name: entry.name)
            }
            current = entry.parent
        }
        return nil
    }

    /// A folder on the path of what is to be told, of which nobody knows whether our own move of it was
    /// carried out: what is told by that path would be told of something else, or of nothing.
    static func strayFolder(
        above subject: Pending.Subject, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        guard turn.facts.knowsByPlace, try transaction.hasSent() else { return nil }
        for start in try turn.pathParents(of: subject, transaction).parents {
            var current = start
            // No real path is this deep.
            for _ in 0..<4096 where current != turn.facts.rootIdentifier {
                guard let folder = try turn.known(current, transaction) else { break }
                if !turn.memory.questions.placesSeen.contains(current),
                    let found = try turn.destination(of: current, transaction),
                    found.parent != folder.parent || found.reference.path.last != folder.name
                {
                    return current
                }
                guard let next = folder.parent else { break }
                current = next
            }
        }
        return nil
    }
}
