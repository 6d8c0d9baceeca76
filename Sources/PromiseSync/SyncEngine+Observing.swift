import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// What a listing shows becomes placeholders in a folder that nobody had looked into, and is compared with what was agreed on
// in a folder that was known.

extension SyncEngine {
    /// So that a request of the mount waits for no more than a few milliseconds of it.
    private static let itemsPerWrite = 256

    func store(_ items: [Item], of folder: NodeID, _ listing: inout Listing) throws(Failure) {
        // In the order of names, neighbours are compared with what is known of them at once.
        let items = listing.isFirst ? items : items.sorted { $0.name < $1.name }
        var position = 0
        while position < items.count {
            let slice = items[position..<min(position + SyncEngine.itemsPerWrite, items.count)]
            if listing.isFirst {
                let count = try index.write { transaction throws(Failure) in
                    try storeFirst(slice, of: folder, listing, transaction)
                }
                if count > 0 { listing.hasNews = true }
            } else {
                let found = try index.write { transaction throws(Failure) in
                    try compare(slice, of: folder, listing, transaction)
                }
                found.seen.forEach { listing.seen.insert($0) }
                listing.unchangedCount += found.unchangedCount
                for name in found.appeared { observer.entryChanged(in: folder, named: name) }
                if !found.appeared.isEmpty { observer.treeChanged(found.appeared.map { .appeared(TreePlace($0, in: folder)) }) }
            }
            position = slice.endIndex
        }
    }

    /// Returns how many names are new here.
    private func storeFirst(
        _ items: ArraySlice<Item>, of folder: NodeID, _ listing: Listing, _ transaction: borrowing Transaction
    ) throws(Failure) -> Int {
        guard let parent = try shownFolder(folder, transaction) else { return 0 }
        let first = transaction.nextNode
        let pin = parent.pin
        // Neither expected after a crash, nor known from before.
        let isUnheard = try !transaction.hasSent()
        var areOthersUnknown = isUnheard ? try transaction.knowsListedOnly() : false
        let byPlace = knowsByPlace
        // Then `identified` has nothing to add to an item that is not known.
        var isBlank = isUnheard
        if isBlank, byPlace, !areOthersUnknown { isBlank = try transaction.knowsListedOnly(in: listing.identifier) }
        var insertedCount = 0
        var othersCount = 0
        var folderCount = 0
        for listed in items {
            if try isArrival(listed, in: listing.identifier, transaction) { continue }
            if isBlank {
                // In a folder that nobody has looked into an item is new, but for rare moves.
                var item = listed
                if byPlace { item.parent = listing.identifier }
                var node = Node(placeholderFor: item)
                node.pin = pin
                if try transaction.insertListed(node, of: item, in: folder, isUnknown: areOthersUnknown) {
                    insertedCount += 1
                    if item.kind == .folder { folderCount += 1 }
                    continue
                }
            }
            let item = try identified(listed, in: listing.identifier, transaction)
            if try observe(item, in: folder, listing, transaction) { othersCount += 1 }
            areOthersUnknown = false
        }
        guard insertedCount > 0 else { return othersCount }
        let count = Int(transaction.nextNode.rawValue - first.rawValue)
        try transaction.countSubfolders(of: folder, folderCount)
        try transaction.recordListed(from: first, count: count, in: folder)
        return insertedCount + othersCount
    }

    /// Nil when it was removed here while it was listed: nothing is put into it any more.
    private func shownFolder(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Node? {
        guard let node = try transaction.node(folder), folder == .root || node.linkCount > 0 else { return nil }
        return node
    }

    /// What a part of a listing showed in a folder that was known before.
    private struct Comparison {
        var seen: [ItemIdentifier] = []
        /// Names that are new here.
        var appeared: [FileName] = []
        var unchangedCount = 0
    }

    /// Nearly all items are what was agreed on, so that is asked for at once.
    private func compare(
        _ items: ArraySlice<Item>, of folder: NodeID, _ listing: Listing, _ transaction: borrowing Transaction
    ) throws(Failure) -> Comparison {
        var found = Comparison()
        guard let first = items.first?.name, let last = items.last?.name, try shownFolder(folder, transaction) != nil else {
            return found
        }
        let agreed = try transaction.agreedItems(in: listing.identifier, from: first, through: last)
        let rules = (byPlace: knowsByPlace, keepsTimes: keepsTimes)
        found.seen.reserveCapacity(items.count)
        for listed in items {
            if let known = agreed[listed.name]?.item, isUnchanged(listed, known, rules), !isNewer(known, than: listing) {
                found.seen.append(known.identifier)
                found.unchangedCount += 1
                continue
            }
            if try isArrival(listed, in: listing.identifier, transaction) { continue }
            let item = try identified(listed, in: listing.identifier, transaction)
            found.seen.append(item.identifier)
            if try observe(item, in: folder, listing, transaction) { found.appeared.append(item.name) }
        }
        return found
    }

    /// Whether `identified` would make `known` of a listed item at its place.
    private func isUnchanged(_ listed: Item, _ known: Item, _ rules: (byPlace: Bool, keepsTimes: Bool)) -> Bool {
        guard listed.version == known.version, listed.kind == known.kind else { return false }
        guard rules.byPlace || (listed.identifier == known.identifier && listed.parent == known.parent) else { return false }
        return !rules.keepsTimes || !differs(listed.metadata, known.metadata, kind: known.kind)
    }

    /// Everything was listed.
    func finish(_ listing: Listing, of folder: NodeID) throws(Failure) {
        if !listing.isFirst { try noteMissing(listing) }
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(folder), !node.isPopulated else { return }
            node.isPopulated = true
            try transaction.update(node)
        }
        let node = try index.read { transaction throws(Failure) in try transaction.node(folder) }
        // What appeared in a folder that is kept here is fetched.
        if node?.pin == .pinned { state.fetches.lookForPinned() }
        if listing.isFirst {
            // Its links count the subfolders, of which none was known.
            if let node, node.linkCount > 2 { observer.nodeChanged(folder, content: false) }
        } else {
            // A large folder is not listed again and again while somebody works in it.
            let cost = clock.uptime() - listing.started
            if cost > .milliseconds(20) {
                state.toList.postpone(listing.identifier, to: clock.uptime() + min(cost * 10, .seconds(30)))
            }
        }
    }

    /// What a listing that came to its end did not show is asked for. In parts, as there may be a million; nothing else is
    /// agreed on meanwhile, and what is renamed here stays where both sides last agreed that it is.
    private func noteMissing(_ listing: Listing) throws(Failure) {
        let isShown = try index.read { transaction throws(Failure) in try shownFolder(listing.folder, transaction) != nil }
        guard isShown else { return }
        if try index.read({ transaction throws(Failure) in try isWhole(listing, transaction) }) { return }
        var span: NameSpan?
        repeat {
            span = try index.read { transaction throws(Failure) in
                let next = try transaction.nameSpan(of: listing.identifier, after: span, count: SyncEngine.itemsPerWrite)
                guard let next else { return nil }
                for item in try transaction.remoteChildren(of: listing.identifier, in: next)
                where !listing.seen.contains(item.identifier) && !isNewer(item, than: listing) {
                    state.missing.insert(item.identifier)
                }
                return next
            }
        } while span != nil
    }

    /// Whether it showed all that was agreed on, each once. Between two pages nothing else may have been agreed on.
    private func isWhole(_ listing: Listing, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard listing.seen.count == listing.unchangedCount else { return false }
        if listing.pageCount > 1 {
            guard state.operationCount == listing.operationCount, try transaction.lastChange() == listing.lastChange else {
                return false
            }
        }
        return try transaction.agreedItemCount(in: listing.identifier) == listing.unchangedCount
    }

    /// Our own operation on the item, or in its place, is under way or finished after the listing began.
    private func isNewer(_ item: Item, than listing: Listing) -> Bool {
        isNewer(item, in: listing.identifier, than: listing.operationCount)
    }

    func isNewer(_ item: Item, in folder: ItemIdentifier, than count: Int) -> Bool {
        if state.running.isEmpty && state.touchedItems.isEmpty && state.touchedPlaces.isEmpty { return false }
        let place = Place(parent: folder, name: item.name)
        if state.running.values.contains(where: { $0.identifier == item.identifier || $0.places.contains(place) }) { return true }
        return state.touchedItems[item.identifier, default: -1] > count || state.touchedPlaces[place, default: -1] > count
    }

    /// Stores one listed item; true when a placeholder was made for it.
    private func observe(
        _ item: Item, in folder: NodeID, _ listing: Listing, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if !listing.isFirst && isNewer(item, than: listing) {
            rescan(listing.identifier, after: .milliseconds(500))
            return false
        }
        let synced = try transaction.synced(item.identifier)
        if synced.map({ !isSame(item, $0.item) }) ?? true, try recognize(item, transaction) { return false }
        if synced == nil, try transaction.entry(for: item.identifier) == nil,
            try transaction.entry(in: folder, named: item.name) == nil
        {
            try insertPlaceholder(item, in: folder, transaction)
            return true
        }
        try observe(item, synced: synced, transaction)
        return false
    }

    /// Stores what the provider says of a known item.
    func observe(_ item: Item, synced: SyncedItem?, _ transaction: borrowing Transaction) throws(Failure) {
        if synced.map({ !isSame(item, $0.item) }) ?? true, try recognize(item, transaction) { return }
        if let synced, isSame(item, synced.item) {
            if try transaction.remote(item.identifier) != nil { try transaction.setRemote(item.identifier, nil) }
        } else {
            try transaction.setRemote(item.identifier, .present(item))
            state.hasDivergences = true
        }
    }

    func isSame(_ left: Item, _ right: Item) -> Bool {
        left.parent == right.parent && left.name == right.name && left.version == right.version && left.kind == right.kind
            && !differs(left.metadata, right.metadata, kind: left.kind)
    }
}
