import Logging
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Learning of single items: those that listings no longer show are asked for before anything is believed deleted, and the
// provider's change feed names others.

extension SyncEngine {
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
        // What is under way may show them; but a poll of everything may be under way for long.
        guard !state.missing.isEmpty, state.listings.isEmpty || !state.polled.isEmpty else { return }
        let room = SyncEngine.verificationsMax - state.verifying.count
        guard room > 0 else { return }
        let identifiers: [ItemIdentifier]
        do throws(Failure) {
            identifiers = try index.read { transaction throws(Failure) in try missingToAsk(room, transaction) }
        } catch {
            logger.error("items could not be asked for", metadata: ["reason": "\(error.message)"])
            return
        }
        state.missing.subtract(identifiers)
        for identifier in identifiers {
            do throws(Failure) {
                let question: Question? = try index.read { transaction throws(Failure) in
                    try self.question(about: identifier, transaction)
                }
                switch question {
                case nil: break
                case .answered:
                    verified(identifier, .failure(ProviderError(.notFound, "its folder is gone")), state.operationCount)
                case .ask(let places): ask(for: identifier, at: places)
                }
            } catch {
                logger.warning("an item could not be asked for", metadata: ["reason": "\(error.message)"])
            }
        }
    }

    /// Where an item may be, and the folder that this is in where it is not the one that the item was in.
    private typealias Whereabouts = (reference: ItemReference, parent: ItemIdentifier?)

    private enum Question {
        /// In this order.
        case ask([Whereabouts])
        /// It is nowhere.
        case answered
    }

    /// Nil: nothing has to be asked, or not now.
    private func question(
        about identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Question? {
        // Its path is about to change: it is asked for when that is done.
        if try mayHaveMoved(identifier, since: .max, transaction) {
            state.missing.insert(identifier)
            return nil
        }
        if let folder = try uncertainFolder(above: identifier, transaction) {
            state.missing.insert(identifier)
            askFirst(for: folder)
            return nil
        }
        var places: [Whereabouts] = []
        if let reference = try reference(to: identifier, transaction) { places.append((reference, nil)) }
        if let destination = try destination(of: identifier, transaction) {
            places.append((destination.reference, destination.parent))
        }
        if !places.isEmpty { return .ask(places) }
        // No path leads to where it was. What is shown here goes or stays with its folder.
        if state.arrivals[identifier] != nil { return .answered }
        guard try transaction.entry(for: identifier) == nil, try transaction.synced(identifier) != nil else { return nil }
        return knowsByPlace ? .answered : .ask([(ItemReference(identifier: identifier, path: []), nil)])
    }

    /// Not again and again, where there is no answer.
    func askFirst(for identifier: ItemIdentifier) {
        let now = clock.uptime()
        if let asked = state.placesAsked[identifier], now - asked < .seconds(1) { return }
        state.placesAsked[identifier] = now
        state.missing.insert(identifier)
    }

    private func ask(for identifier: ItemIdentifier, at places: [Whereabouts]) {
        let count = state.operationCount
        state.verifying.insert(identifier)
        Task { [provider, mailbox] in
            var answer: Result<(item: Item, parent: ItemIdentifier?), ProviderError>
            answer = .failure(ProviderError(.notFound, "it is nowhere"))
            for place in places {
                do throws(ProviderError) {
                    answer = .success((try await provider.item(for: place.reference), place.parent))
                    break
                } catch {
                    answer = .failure(error)
                    if error.code != .notFound { break }
                }
            }
            mailbox.post { [answer] in $0.verified(identifier, answer, count) }
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
            let arrival = state.arrivals.removeValue(forKey: identifier)
            if let arrival, try followArrival(arrival, result) { return }
            switch result {
            case .success(let (item, parent)):
                if parent == nil { state.placesSeen.insert(identifier) }
                try index.write { transaction throws(Failure) in
                    if let item = try identified(item, as: identifier, foundIn: parent, transaction) {
                        try observe(item, synced: try transaction.synced(identifier), transaction)
                        try forgetIfUnreachable(identifier, transaction)
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

    /// What was removed here and is still in a folder that no path leads to is met when that is listed.
    private func forgetIfUnreachable(_ identifier: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) {
        guard try transaction.entry(for: identifier) == nil, try transaction.synced(identifier) != nil,
            try reference(to: identifier, transaction) == nil
        else { return }
        try forgetItem(identifier, transaction)
        try transaction.deletePending(.deletion(identifier))
    }

    /// False when it is as if nothing had arrived.
    private func followArrival(
        _ arrival: Item, _ result: Result<(item: Item, parent: ItemIdentifier?), ProviderError>
    ) throws(Failure) -> Bool {
        var found: Item?
        switch result {
        case .success(let (item, _)): found = item
        case .failure(let problem) where problem.code == .notFound: break
        case .failure:
            // The next listing shows it again.
            if let parent = arrival.parent { rescan(parent, after: .seconds(5)) }
            return false
        }
        return try index.write { transaction throws(Failure) in try follow(arrival, found: found, transaction) }
    }

    // MARK: The change feed

    func startFeed() {
        pollUsed()
        state.feed?.cancel()
        state.anchor = nil
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
                        let current = try await provider.currentAnchor()
                        anchor = current
                        mailbox.post { engine in
                            engine.state.anchor = current
                            engine.rescanEverything()
                        }
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

    /// For somebody who waits. A provider without a feed names what may have changed, which can be found with fewer requests than
    /// it takes to list all that is known; a feed may have missed something.
    func lookForNews() {
        guard let anchor = state.anchor, isOnline, !provider.capabilities.contains(.changeFeed) else { return rescanEverything() }
        state.newsAskedCount += 1
        Task { [provider, mailbox] in
            var page: ChangePage?
            do throws(ProviderError) { page = try await provider.changes(since: anchor) } catch {}
            mailbox.post { [page] engine in
                engine.state.newsAskedCount -= 1
                guard let page, engine.store(page) else { return engine.rescanEverything() }
                for folder in page.foldersToList { engine.rescan(folder, after: .zero) }
            }
        }
    }

    private func changed(_ page: ChangePage) {
        state.anchor = page.anchor
        _ = store(page)
        if !provider.capabilities.contains(.changeFeed) {
            guard mayPoll else { return }
            state.polled = page.foldersToList
            state.pollBegan = clock.uptime()
        }
        for folder in page.foldersToList { rescan(folder) }
    }

    /// What a page tells of items; false when it could not be stored.
    private func store(_ page: ChangePage) -> Bool {
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
            return false
        }
        return true
    }

    /// Whatever looking at everything takes, and before all others: the folders of what programs use.
    private func pollUsed() {
        state.usedPoll?.cancel()
        guard let used else { return }
        state.usedPoll = Task { [provider, mailbox, configuration] in
            while !Task.isCancelled {
                try? await Task.sleep(for: configuration.pollInterval)
                // One that was away at the start may have a feed after all.
                let nodes = used.take()
                if nodes.isEmpty || provider.capabilities.contains(.changeFeed) { continue }
                mailbox.post { $0.rescanFolders(of: nodes) }
            }
        }
    }

    private func rescanFolders(of used: Set<NodeID>) {
        do throws(Failure) {
            let identifiers: Set<ItemIdentifier> = try index.read { transaction throws(Failure) in
                var result: Set<ItemIdentifier> = []
                for node in used {
                    guard let kind = try transaction.node(node)?.kind else { continue }
                    let places = kind == .folder ? [node] : try transaction.entries(of: node).map(\.parent)
                    for folder in places {
                        if let identifier = try identifier(of: folder, transaction) { result.insert(identifier) }
                    }
                }
                return result
            }
            for identifier in identifiers { rescan(identifier, isUsed: true) }
        } catch {
            // They are looked at with all others.
            logger.debug("folders in use could not be looked at", metadata: ["reason": "\(error.message)"])
        }
    }

    /// A provider without a feed names all that is known, each time. Where listing that takes longer than the poll interval it
    /// would never end, and whoever waits for the provider to have everything would wait for ever: a pause is kept. It is as long
    /// as the looking took, so that a million objects do not keep a server busy all the time.
    private var mayPoll: Bool {
        let pause = max(configuration.pollInterval / 2, min(state.pollEnded - state.pollBegan, .seconds(600)))
        return state.polled.isEmpty && clock.uptime() >= state.pollEnded + pause
    }

    func notePolled(_ folder: ItemIdentifier) {
        guard state.polled.remove(folder) != nil, state.polled.isEmpty else { return }
        state.pollEnded = clock.uptime()
    }
}
