import Logging
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Learning what a folder holds, first when a program opens it and again when something may have changed.

extension SyncEngine {
    /// One listing under way.
    struct Listing {
        /// Tells it from another one of the same folder.
        var number: Int
        var folder: NodeID
        var identifier: ItemIdentifier
        var isFirst: Bool
        /// Our operations finished after this count are newer than the listing.
        var operationCount: Int
        var started: Duration
        var waiters: [HydrationReply] = []
        var task: Task<Void, Never>?
        /// Unless it is the first: everything it showed, and the names that are new here.
        var seen: Set<ItemIdentifier> = []
        var appeared: [FileName] = []
        /// How many were what was agreed on.
        var unchangedCount = 0
        var pageCount = 0
    }

    /// Makes a folder's children known; replies when the index has them. Called from any thread.
    package func list(_ folder: NodeID, reply: @escaping HydrationReply) {
        if let failure = connectionFailure {
            reply(.failure(failure))
            return
        }
        mailbox.post { $0.startFirstListing(of: folder, reply: reply) }
    }

    private func startFirstListing(of folder: NodeID, reply: @escaping HydrationReply) {
        if state.listings[folder] != nil {
            state.listings[folder]?.waiters.append(reply)
            return
        }
        do throws(Failure) {
            let (node, identifier): (Node?, ItemIdentifier?) = try index.read { transaction throws(Failure) in
                let node = try transaction.node(folder)
                return (node, try self.identifier(of: folder, transaction))
            }
            guard let node else { throw Failure(.stale, "the folder is gone") }
            guard let identifier, !node.isPopulated else {
                reply(.success(()))
                return
            }
            startListing(of: folder, identifier, isFirst: true, waiters: [reply])
        } catch {
            reply(.failure(error))
            return
        }
        listAhead(of: folder)
    }

    /// Who walks through the tree finds the next folders listed.
    private func listAhead(of folder: NodeID) {
        do throws(Failure) {
            let next: [NodeID] = try index.read { transaction throws(Failure) in
                guard let parent = try transaction.entries(of: folder).first?.parent else { return [] }
                return try state.walk.asked(for: folder, in: parent, at: clock.uptime()) { () throws(Failure) in
                    try transaction.unlistedFolders(in: parent)
                }
            }
            try listAhead(next)
        } catch {
            // Whoever needs them asks for them.
            logger.debug("folders were not listed ahead", metadata: ["reason": "\(error.message)"])
        }
    }

    private func listAhead(_ folders: [NodeID]) throws(Failure) {
        var folders = folders[...]
        while let folder = folders.popFirst() {
            let identifier: ItemIdentifier? = try index.read { transaction throws(Failure) in
                guard state.listings[folder] == nil, try transaction.node(folder)?.isPopulated == false else { return nil }
                return try self.identifier(of: folder, transaction)
            }
            if let identifier {
                startListing(of: folder, identifier, isFirst: true, waiters: [])
            } else {
                folders += state.walk.ended(folder)
            }
        }
    }

    /// Lists every known folder again.
    func rescanEverything(beforeTelling: Bool = false) {
        do throws(Failure) {
            let now = clock.uptime()
            let identifiers: [ItemIdentifier] = try index.read { transaction throws(Failure) in
                var result: [ItemIdentifier] = []
                for folder in try transaction.populatedFolders() {
                    if let identifier = try identifier(of: folder, transaction) { result.append(identifier) }
                }
                return result
            }
            for identifier in identifiers { state.folderDue[identifier] = now }
            if beforeTelling { state.unscanned.formUnion(identifiers) }
        } catch {
            logger.error("folders could not be looked at again", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Something may have changed in this folder. Events come in bursts, so a moment passes first.
    func rescan(_ folder: ItemIdentifier, after delay: Duration = .milliseconds(50)) {
        let due = clock.uptime() + delay
        if let known = state.folderDue[folder], known <= due { return }
        state.folderDue[folder] = due
    }

    func startListings() {
        let now = clock.uptime()
        for (identifier, due) in state.folderDue.sorted(by: { $0.value < $1.value }) where due <= now {
            guard state.listings.count < configuration.listingsMax else { return }
            let folder: NodeID?
            do throws(Failure) {
                folder = try index.read { transaction throws(Failure) in
                    guard let node = try node(for: identifier, transaction), let row = try transaction.node(node) else {
                        return nil
                    }
                    return row.isPopulated ? node : nil
                }
            } catch {
                logger.error("a folder could not be listed", metadata: ["reason": "\(error.message)"])
                return
            }
            if let folder {
                if state.listings[folder] != nil { continue }
                startListing(of: folder, identifier, isFirst: false, waiters: [])
            }
            if folder == nil { state.unscanned.remove(identifier) }
            state.folderDue[identifier] = nil
        }
    }

    private func startListing(of folder: NodeID, _ identifier: ItemIdentifier, isFirst: Bool, waiters: [HydrationReply]) {
        state.listingCount += 1
        let number = state.listingCount
        var listing = Listing(
            number: number, folder: folder, identifier: identifier, isFirst: isFirst, operationCount: state.operationCount,
            started: clock.uptime(), waiters: waiters)
        listing.task = Task { [provider, mailbox, index] in
            do throws(ProviderError) {
                let reference: ItemReference? = try catchingFailure { () throws(Failure) in
                    try index.read { transaction throws(Failure) in
                        try transaction.remotePath(of: identifier).map { ItemReference(identifier: identifier, path: $0) }
                    }
                }
                guard let reference else { throw ProviderError(.notFound, "the folder is not known at the provider") }
                var page: PageToken?
                repeat {
                    let result = try await provider.enumerateItems(in: reference, page: page)
                    page = result.next
                    // One page is stored while the provider makes the next one.
                    mailbox.post { [isLast = page == nil] in $0.listed(folder, number, result.items, isLast: isLast) }
                } while page != nil
            } catch {
                mailbox.post { $0.listingFailed(folder, number, error) }
            }
        }
        state.listings[folder] = listing
    }

    private func listed(_ folder: NodeID, _ number: Int, _ items: [Item], isLast: Bool) {
        guard var listing = state.listings[folder], listing.number == number else { return }
        do throws(Failure) {
            if try startAgain(listing) { return }
            try store(items, of: folder, &listing)
            listing.pageCount += 1
            state.listings[folder] = listing
            guard isLast else { return }
            state.listings[folder] = nil
            try finish(listing, of: folder)
            end(listing, .success(()))
        } catch {
            logger.error("a listing could not be stored", metadata: ["reason": "\(error.message)"])
            state.listings[folder] = nil
            listing.task?.cancel()
            end(listing, .failure(error))
        }
    }

    private func listingFailed(_ folder: NodeID, _ number: Int, _ problem: ProviderError) {
        guard let listing = state.listings[folder], listing.number == number else { return }
        if problem.code == .notFound, (try? startAgain(listing)) == true { return }
        state.listings[folder] = nil
        judge(problem)
        switch problem.code {
        case .notFound: state.missing.insert(listing.identifier)
        case .offline, .authenticate, .cancelled: break
        default: if !listing.isFirst { rescan(listing.identifier, after: .seconds(5)) }
        }
        end(listing, .failure(problem.failure))
    }

    /// True when a folder above was moved while this one was listed: its path led nowhere, or to another folder.
    private func startAgain(_ listing: Listing) throws(Failure) -> Bool {
        let isDoubtful = try index.read { transaction throws(Failure) in
            try mayHaveMoved(listing.identifier, since: listing.operationCount, transaction)
        }
        guard isDoubtful else { return false }
        listing.task?.cancel()
        state.listings[listing.folder] = nil
        if listing.isFirst {
            startListing(of: listing.folder, listing.identifier, isFirst: true, waiters: listing.waiters)
        } else {
            rescan(listing.identifier, after: .milliseconds(100))
            end(listing, .success(()))
        }
        return true
    }

    private func end(_ listing: Listing, _ outcome: Result<Void, Failure>) {
        state.unscanned.remove(listing.identifier)
        listing.waiters.forEach { $0(outcome) }
        let next = state.walk.ended(listing.folder)
        // Whoever needs them asks for them.
        try? listAhead(next)
        if state.listings.isEmpty && state.running.isEmpty && state.verifying.isEmpty {
            state.touchedItems = [:]
            state.touchedPlaces = [:]
        }
    }

    func failListings(_ failure: Failure) {
        state.walk.stop()
        for (folder, listing) in state.listings {
            listing.task?.cancel()
            listing.waiters.forEach { $0(.failure(failure)) }
            state.listings[folder] = nil
            _ = state.walk.ended(folder)
            if !listing.isFirst { state.folderDue[listing.identifier] = clock.uptime() }
        }
    }

    // MARK: Storing what was listed

    /// So that a request of the mount waits for no more than a few milliseconds of it.
    private static let itemsPerWrite = 256

    private func store(_ items: [Item], of folder: NodeID, _ listing: inout Listing) throws(Failure) {
        // In the order of names, neighbours are compared with what is known of them at once.
        let items = listing.isFirst ? items : items.sorted { $0.name < $1.name }
        var position = 0
        while position < items.count {
            let slice = items[position..<min(position + SyncEngine.itemsPerWrite, items.count)]
            if listing.isFirst {
                try index.write { transaction throws(Failure) in try storeFirst(slice, of: folder, listing, transaction) }
            } else {
                let found = try index.write { transaction throws(Failure) in
                    try compare(slice, of: folder, listing, transaction)
                }
                listing.appeared += found.appeared
                listing.seen.formUnion(found.seen)
                listing.unchangedCount += found.unchangedCount
            }
            position = slice.endIndex
        }
    }

    private func storeFirst(
        _ items: ArraySlice<Item>, of folder: NodeID, _ listing: Listing, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let first = transaction.nextNode
        let pin = try transaction.node(folder)?.pin ?? .automatic
        // Neither expected after a crash, nor known from before.
        let isUnheard = state.intents?.isEmpty == true
        var insertedCount = 0
        var folderCount = 0
        for listed in items {
            let item = try identified(listed, in: listing.identifier, transaction)
            var node = Node(placeholderFor: item)
            node.pin = pin
            // In a folder that nobody has looked into an item is new, but for rare moves.
            if isUnheard, try transaction.insertListed(node, of: item, in: folder) {
                insertedCount += 1
                if item.kind == .folder { folderCount += 1 }
            } else {
                _ = try observe(item, in: folder, listing, transaction)
            }
        }
        guard insertedCount > 0 else { return }
        let count = Int(transaction.nextNode.rawValue - first.rawValue)
        try transaction.countSubfolders(of: folder, folderCount)
        try transaction.recordListed(from: first, count: count, in: folder)
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
        guard let first = items.first?.name, let last = items.last?.name else { return found }
        let agreed = try transaction.agreedItems(in: listing.identifier, from: first, through: last)
        let rules = (byPlace: knowsByPlace, keepsTimes: keepsTimes)
        found.seen.reserveCapacity(items.count)
        for listed in items {
            if let known = agreed[listed.name]?.item, isUnchanged(listed, known, rules), !isNewer(known, than: listing) {
                found.seen.append(known.identifier)
                found.unchangedCount += 1
                continue
            }
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
    private func finish(_ listing: Listing, of folder: NodeID) throws(Failure) {
        try index.write { transaction throws(Failure) in
            let isWhole = listing.isFirst ? true : try isWhole(listing, transaction)
            if !isWhole {
                for item in try transaction.remoteChildren(of: listing.identifier)
                where !listing.seen.contains(item.identifier) && !isNewer(item, than: listing) {
                    state.missing.insert(item.identifier)
                }
            }
            guard var node = try transaction.node(folder), !node.isPopulated else { return }
            node.isPopulated = true
            try transaction.update(node)
        }
        let node = try index.read { transaction throws(Failure) in try transaction.node(folder) }
        if node?.pin == .pinned { try hydratePinned(in: folder) }
        if listing.isFirst {
            // Its links count the subfolders, of which none was known.
            if let node, node.linkCount > 2 { observer.nodeChanged(folder, content: false) }
        } else {
            // A large folder is not listed again and again while somebody works in it.
            let cost = clock.uptime() - listing.started
            if cost > .milliseconds(20), let due = state.folderDue[listing.identifier] {
                state.folderDue[listing.identifier] = max(due, clock.uptime() + min(cost * 10, .seconds(30)))
            }
            for name in listing.appeared { observer.entryChanged(in: folder, named: name) }
        }
    }

    /// Whether it showed all that was agreed on, each once. Between two pages something else may have been agreed on.
    private func isWhole(_ listing: Listing, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard listing.pageCount == 1, listing.seen.count == listing.unchangedCount else { return false }
        return try transaction.agreedItemCount(in: listing.identifier) == listing.unchangedCount
    }

    /// What appeared in a folder that is kept here is fetched.
    private func hydratePinned(in folder: NodeID) throws(Failure) {
        let nodes: [Node] = try index.read { transaction throws(Failure) in
            var result: [Node] = []
            for entry in try transaction.children(of: folder) {
                if let node = try transaction.node(entry.node) { result.append(node) }
            }
            return result
        }
        for node in nodes where node.kind == .file && node.pin == .pinned && node.content != .whole {
            hydrator.hydrateInBackground(node.id)
        }
    }

    /// Our own operation on the item, or in its place, is under way or finished after the listing began.
    private func isNewer(_ item: Item, than listing: Listing) -> Bool {
        if state.running.isEmpty && state.touchedItems.isEmpty && state.touchedPlaces.isEmpty { return false }
        let place = Place(parent: listing.identifier, name: item.name)
        if state.running.values.contains(where: { $0.identifier == item.identifier || $0.places.contains(place) }) { return true }
        return state.touchedItems[item.identifier, default: -1] > listing.operationCount
            || state.touchedPlaces[place, default: -1] > listing.operationCount
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

    // MARK: Asking for single items

    /// Looks at one item again, e.g. because a fetch found another version.
    package func lookAgain(at node: NodeID) { mailbox.post { $0.refresh(node) } }

    func refresh(_ node: NodeID) {
        do throws(Failure) {
            let identifier: ItemIdentifier? = try index.read { transaction throws(Failure) in
                try self.identifier(of: node, transaction)
            }
            if let identifier { state.missing.insert(identifier) }
        } catch {
            logger.warning("an item could not be looked at", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Questions for single items that are under way at once, at most.
    private static let verificationsMax = 64

    /// Items that listings no longer show may have moved: the provider is asked before anything is believed deleted.
    func verifyMissing() {
        guard !state.missing.isEmpty, state.listings.isEmpty else { return }
        let room = SyncEngine.verificationsMax - state.verifying.count
        guard room > 0 else { return }
        let identifiers = state.missing.subtracting(state.verifying).prefix(room)
        state.missing.subtract(identifiers)
        for identifier in identifiers {
            let reference: ItemReference?
            let destination: (reference: ItemReference, parent: ItemIdentifier)?
            do throws(Failure) {
                (reference, destination) = try index.read { transaction throws(Failure) in
                    // Its path is about to change: it is asked for when that is done.
                    if try mayHaveMoved(identifier, since: .max, transaction) {
                        state.missing.insert(identifier)
                        return (nil, nil)
                    }
                    return (try self.reference(to: identifier, transaction), try self.destination(of: identifier, transaction))
                }
            } catch {
                continue
            }
            guard let reference else { continue }
            state.verifying.insert(identifier)
            let count = state.operationCount
            Task { [provider, mailbox] in
                do throws(ProviderError) {
                    let item = try await provider.item(for: reference)
                    mailbox.post { $0.verified(identifier, .success((item, nil)), count) }
                } catch {
                    guard error.code == .notFound, let destination else {
                        return mailbox.post { $0.verified(identifier, .failure(error), count) }
                    }
                    do throws(ProviderError) {
                        let item = try await provider.item(for: destination.reference)
                        mailbox.post { $0.verified(identifier, .success((item, destination.parent)), count) }
                    } catch {
                        mailbox.post { $0.verified(identifier, .failure(error), count) }
                    }
                }
            }
        }
    }

    /// With an item comes the folder it was found in, where that is not the one it was in.
    private func verified(
        _ identifier: ItemIdentifier, _ result: Result<(item: Item, parent: ItemIdentifier?), ProviderError>, _ count: Int
    ) {
        state.verifying.remove(identifier)
        do throws(Failure) {
            // An answer from before our own operation says nothing; the item is asked for again afterwards.
            let isDoubtful = try index.read { transaction throws(Failure) in
                try mayHaveMoved(identifier, since: count, transaction)
            }
            if isDoubtful || state.running.values.contains(where: { $0.identifier == identifier })
                || state.touchedItems[identifier, default: -1] > count
            {
                state.missing.insert(identifier)
                return
            }
            switch result {
            case .success(let (item, parent)):
                try index.write { transaction throws(Failure) in
                    if let item = try identified(item, as: identifier, foundIn: parent, transaction) {
                        try observe(item, synced: try transaction.synced(identifier), transaction)
                    } else {
                        try transaction.setRemote(identifier, .deleted)
                        state.hasDivergences = true
                    }
                }
            case .failure(let problem) where problem.code == .notFound:
                try index.write { transaction throws(Failure) in try transaction.setRemote(identifier, .deleted) }
                state.hasDivergences = true
            case .failure(let problem):
                judge(problem)
                // Nothing else asks for it before its folder is looked at again.
                let parent = try index.read { transaction throws(Failure) in try known(identifier, transaction)?.parent }
                if let parent { rescan(parent, after: .seconds(5)) }
            }
        } catch {
            logger.error("an item could not be stored", metadata: ["reason": "\(error.message)"])
        }
    }

    // MARK: The change feed

    func startFeed() {
        state.feed?.cancel()
        state.feed = Task { [provider, mailbox, configuration] in
            var anchor: Anchor?
            var attempts = 0
            while !Task.isCancelled {
                do throws(ProviderError) {
                    if let known = anchor {
                        if provider.capabilities.contains(.changePush) {
                            try await provider.waitForChanges(since: known)
                        } else {
                            try? await Task.sleep(for: configuration.pollInterval)
                        }
                        let page = try await provider.changes(since: known)
                        anchor = page.anchor
                        mailbox.post { $0.changed(page) }
                    } else {
                        anchor = try await provider.currentAnchor()
                        mailbox.post { $0.rescanEverything() }
                    }
                    attempts = 0
                } catch {
                    if Task.isCancelled || error.code == .cancelled { return }
                    if error.code == .anchorExpired {
                        anchor = nil
                        continue
                    }
                    attempts += 1
                    mailbox.post { [error] in $0.judge(error) }
                    if error.code == .offline || error.code == .authenticate { return }
                    try? await Task.sleep(for: configuration.backoff.delay(after: attempts))
                }
            }
        }
    }

    private func changed(_ page: ChangePage) {
        do throws(Failure) {
            try index.write { transaction throws(Failure) in
                for item in page.updated { try observe(item, synced: try transaction.synced(item.identifier), transaction) }
                for identifier in page.deleted where try transaction.synced(identifier) != nil {
                    try transaction.setRemote(identifier, .deleted)
                    state.hasDivergences = true
                }
            }
        } catch {
            logger.error("changes could not be stored", metadata: ["reason": "\(error.message)"])
        }
        for folder in page.foldersToList { rescan(folder) }
    }
}

/// Runs index work inside a provider task.
func catchingFailure<Value>(_ body: () throws(Failure) -> Value) throws(ProviderError) -> Value {
    do throws(Failure) {
        return try body()
    } catch {
        throw ProviderError(.permanent, error.message)
    }
}
