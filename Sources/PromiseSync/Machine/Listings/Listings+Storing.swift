import PromiseCore
import PromiseIndex
import PromiseProvider

// What a listing shows becomes placeholders in a folder that nobody had looked into, and is
// compared with what was agreed on in a folder that was known.

extension Listings {
    /// So that a request of the mount waits for no more than a few milliseconds of one event.
    static let itemsPerEvent = 256

    static func store(
        _ items: [Item], _ listing: Listing, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> ListedItems {
        if listing.isFirst {
            var found = ListedItems()
            found.hasNews = try storeFirst(items, listing, &turn, transaction) > 0
            found.versions = items.map(\.name).filter { ConflictName($0) != nil }
            return found
        }
        let found = try compare(items, listing, &turn, transaction)
        for name in found.appeared { turn.notices.noteAppeared(name, in: listing.folder) }
        return ListedItems(
            seen: found.seen, unchangedCount: found.unchangedCount, hasNews: !found.appeared.isEmpty
        )
    }

    /// Returns how many names are new here.
    private static func storeFirst(
        _ items: [Item], _ listing: Listing, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Int {
        let folder = listing.folder
        guard let parent = try shownFolder(listing, turn, transaction) else { return 0 }
        let first = transaction.nextNode
        let pin = parent.pin
        // Neither expected after a crash, nor known from before.
        let isUnheard = try !transaction.hasSent()
        var areOthersUnknown = isUnheard ? try transaction.knowsListedOnly() : false
        let byPlace = turn.facts.knowsByPlace
        // Then `identified` has nothing to add to an item that is not known.
        var isBlank = isUnheard
        if isBlank, byPlace, !areOthersUnknown {
            isBlank = try transaction.knowsListedOnly(in: listing.identifier)
        }
        var insertedCount = 0
        var othersCount = 0
        var folderCount = 0
        for listed in items {
            if try isArrival(listed, in: listing.identifier, &turn, transaction) { continue }
            if isBlank, !AsideName.isOne(listed.name), !isNewer(listed, than: listing, turn) {
                // In a folder that nobody has looked into an item is new, but for rare moves.
                var item = listed
                if byPlace { item.parent = listing.identifier }
                var node = Node(placeholderFor: item, seenAt: turn.now.time)
                node.pin = pin
                if try transaction.insertListed(
                    node, of: item, in: folder, isUnknown: areOthersUnknown)
                {
                    insertedCount += 1
                    if item.kind == .folder { folderCount += 1 }
                    continue
                }
            }
            let item = try turn.identified(listed, in: listing.identifier, transaction)
            if try observe(item, listing, &turn, transaction) { othersCount += 1 }
            areOthersUnknown = false
        }
        guard insertedCount > 0 else { return othersCount }
        let count = Int(transaction.nextNode.rawValue - first.rawValue)
        try transaction.countSubfolders(of: folder, folderCount)
        try transaction.recordListed(from: first, count: count, in: folder)
        return insertedCount + othersCount
    }

    /// Nil when it was removed here while it was listed, or goes on here as another folder: nothing is put
    /// into it any more.
    private static func shownFolder(
        _ listing: Listing, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Node? {
        let folder = listing.folder
        guard let node = try transaction.node(folder), folder == .root || node.linkCount > 0,
            try turn.identifier(of: folder, transaction) == listing.identifier
        else { return nil }
        return node
    }

    /// What a part of a listing showed in a folder that was known before.
    private struct Comparison {
        var seen: [ItemIdentifier] = []
        /// Names that are new here.
        var appeared: [FileName] = []
        var unchangedCount = 0
    }

    /// Nearly all items are what was agreed on, so that is asked for at once. They are in the order
    /// of names, so that neighbours are compared with what is known of them.
    private static func compare(
        _ items: [Item], _ listing: Listing, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Comparison {
        var found = Comparison()
        guard let first = items.first?.name, let last = items.last?.name,
            try shownFolder(listing, turn, transaction) != nil
        else { return found }
        let agreed = try transaction.agreedItems(in: listing.identifier, from: first, through: last)
        let facts = turn.facts
        found.seen.reserveCapacity(items.count)
        for listed in items {
            if let known = agreed[listed.name]?.item, isUnchanged(listed, known, facts),
                !isNewer(known, than: listing, turn)
            {
                found.seen.append(known.identifier)
                found.unchangedCount += 1
                continue
            }
            if try isArrival(listed, in: listing.identifier, &turn, transaction) { continue }
            let item = try turn.identified(listed, in: listing.identifier, transaction)
            found.seen.append(item.identifier)
            if try observe(item, listing, &turn, transaction) { found.appeared.append(item.name) }
        }
        return found
    }

    /// Whether `identified` would make `known` of a listed item at its place.
    private static func isUnchanged(_ listed: Item, _ known: Item, _ facts: Facts) -> Bool {
        guard listed.version == known.version, listed.kind == known.kind else { return false }
        let isSamePlace = listed.identifier == known.identifier && listed.parent == known.parent
        guard facts.knowsByPlace || isSamePlace else { return false }
        if !facts.keepsTimes { return true }
        return !differs(listed.metadata, known.metadata, kind: known.kind)
            && !hasNewTime(listed, than: known)
    }

    /// Everything was listed. What was not shown is asked for, a part of the names at a time, as
    /// there may be a million; nothing else is agreed on meanwhile, and what is renamed here stays
    /// where both sides last agreed that it is.
    static func complete(
        _ number: Int, after span: NameSpan?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let listing = turn.memory.listings.listing(number) else { return }
        if let next = try partToCompare(listing, after: span, turn, transaction) {
            var missing: [ItemIdentifier] = []
            for item in try transaction.remoteChildren(of: listing.identifier, in: next)
            where !listing.seen.contains(item.identifier) && !isNewer(item, than: listing, turn) {
                missing.append(item.identifier)
            }
            turn.remember { [missing] in $0.questions.missing.formUnion(missing) }
            return turn.act(.go(.listingComplete(number: number, after: next)))
        }
        try finish(listing, &turn, transaction)
        try end(listing, .success(()), &turn, transaction)
    }

    /// Nil when nothing, or nothing more, can be missing.
    private static func partToCompare(
        _ listing: Listing, after span: NameSpan?, _ turn: borrowing Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> NameSpan? {
        guard !listing.isFirst, try shownFolder(listing, turn, transaction) != nil else {
            return nil
        }
        if span == nil, try isWhole(listing, turn, transaction) { return nil }
        return try transaction.nameSpan(of: listing.identifier, after: span, count: itemsPerEvent)
    }

    private static func finish(
        _ listing: Listing, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard var node = try transaction.node(listing.folder) else { return }
        if !node.isPopulated {
            node.isPopulated = true
            try transaction.update(node)
        }
        try VersionsOfOthers.listed(listing.versions, in: listing.folder, &turn, transaction)
        // What appeared in a folder that is kept here is fetched.
        if node.pin == .pinned { turn.lookForPinned() }
        if listing.isFirst {
            // Its links count the subfolders, of which none was known.
            if node.linkCount > 2 { turn.notices.nodes.append((listing.folder, false)) }
            // Only the next one is compared with what is known.
            if listing.followsAnother { turn.listAgain(listing.identifier, after: .zero) }
        } else {
            // A large folder is not listed again and again while somebody works in it.
            let cost = turn.now.uptime - listing.started
            let due = turn.now.uptime + min(cost * 10, .seconds(30))
            let identifier = listing.identifier
            if cost > .milliseconds(20) {
                turn.remember { $0.listings.due.postpone(identifier, to: due) }
            }
        }
    }

    /// Whether it showed all that was agreed on, each once. Between two pages nothing else may have
    /// been agreed on.
    private static func isWhole(
        _ listing: Listing, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard listing.seen.count == listing.unchangedCount else { return false }
        if listing.pageCount > 1 {
            let isSame = turn.memory.operations.count == listing.operationCount
            guard isSame, try transaction.lastChange() == listing.lastChange else { return false }
        }
        return try transaction.agreedItemCount(in: listing.identifier) == listing.unchangedCount
    }

    /// Our own operation on the item, or in its place, is under way or finished after the listing
    /// began.
    private static func isNewer(_ item: Item, than listing: Listing, _ turn: borrowing Turn) -> Bool {
        turn.memory.operations.isNewer(item, in: listing.identifier, than: listing.operationCount)
    }

    /// Whether an earlier operation, of which no answer came, may have left the item.
    private static func isAwaited(
        _ item: Item, in folder: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let running = turn.memory.operations.running.values.compactMap(\.sent)
        return try transaction.sentChanges(to: folder, item.name).contains { !running.contains($0.id) }
    }

    /// Stores one listed item; true when a placeholder was made for it.
    private static func observe(
        _ item: Item, _ listing: Listing, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        // Also of a first one: what was in the folder may be known by its name, and have been written since.
        if isNewer(item, than: listing, turn) {
            if try isAwaited(item, in: listing.identifier, turn, transaction) {
                let folder = listing.folder
                turn.remember { $0.listings.running[folder]?.hasLeftOut = true }
            }
            turn.listAgain(listing.identifier, after: .milliseconds(500))
            return false
        }
        let synced = try transaction.synced(item.identifier)
        let isSame = synced.map { item.isSame(as: $0.item) } ?? false
        if !isSame, try turn.recognize(item, transaction) { return false }
        if synced == nil, !AsideName.isOne(item.name),
            try transaction.entry(for: item.identifier) == nil,
            try transaction.entry(in: listing.folder, named: item.name) == nil,
            try !Telling.mayBeRemoved(item, turn, transaction)
        {
            if try LateCreations.isOne(item, in: listing.folder, &turn, transaction) {
                return false
            }
            try Tree.insertPlaceholder(item, in: listing.folder, &turn, transaction)
            if !listing.isFirst { MovedFolders.noteAppeared(item, &turn) }
            try FolderTimes.lookAfterChange(in: listing.folder, &turn, transaction)
            return true
        }
        try turn.observe(item, synced: synced, transaction)
        return false
    }
}
