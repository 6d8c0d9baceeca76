import Logging
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

// Learning what a folder holds, first when a program opens it and again when something may have changed.

extension SyncEngine {
    /// One listing under way.
    struct Listing {
        /// Tells it from another one of the same folder. 0: it begins when what the folder is in has been moved.
        var number: Int
        var folder: NodeID
        var identifier: ItemIdentifier
        var isFirst: Bool
        /// Our operations finished after this count are newer than the listing.
        var operationCount: Int
        /// Of the feed, when it began; nil where that is not known.
        var lastChange: Int64?
        var started: Duration
        var waiters: [HydrationReply] = []
        /// Those who can go on when there is more, too.
        var readers: [HydrationReply] = []
        var task: Task<Void, Never>?
        /// The page that came last has names that are new here.
        var hasNews = false
        /// Unless it is the first: everything it showed.
        var seen = SeenItems()
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
        mailbox.post { $0.startFirstListing(of: folder, isWholeWanted: true, reply: reply) }
    }

    /// Makes more of a folder's children known; replies when the index has some that it had not, or all. Called from any thread.
    package func listMore(of folder: NodeID, reply: @escaping HydrationReply) {
        if let failure = connectionFailure {
            reply(.failure(failure))
            return
        }
        mailbox.post { $0.startFirstListing(of: folder, isWholeWanted: false, reply: reply) }
    }

    private func startFirstListing(of folder: NodeID, isWholeWanted: Bool, reply: @escaping HydrationReply) {
        if var listing = state.listings[folder] {
            if isWholeWanted { listing.waiters.append(reply) } else { listing.readers.append(reply) }
            state.listings[folder] = listing
            if listing.isFirst { listAhead(of: folder) }
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
            startListing(
                of: folder, identifier, isFirst: true, waiters: isWholeWanted ? [reply] : [],
                readers: isWholeWanted ? [] : [reply])
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
                    try transaction.folders(in: parent, limit: FolderWalk.folderCountMax)
                }
            }
            try listAhead(next)
        } catch {
            // Whoever needs them asks for them.
            logger.debug("folders were not listed ahead", metadata: ["reason": "\(error.message)"])
        }
    }

    /// A program begins to read a folder; called from any thread, each time.
    package func folderIsRead(_ folder: NodeID) {
        guard walkMark.load(ordering: .relaxed) == folder.rawValue else { return }
        mailbox.post { engine in
            // Whoever needs them asks for them.
            try? engine.listAhead(engine.state.walk.reached(folder, at: engine.clock.uptime()))
        }
    }

    private func listAhead(after folder: NodeID) throws(Failure) {
        let next: [NodeID] = try index.read { transaction throws(Failure) in
            try state.walk.ended(folder) { () throws(Failure) in
                try transaction.folders(in: folder, limit: FolderWalk.folderCountMax)
            }
        }
        try listAhead(next)
    }

    private func listAhead(_ folders: [NodeID]) throws(Failure) {
        defer { walkMark.store(state.walk.mark?.rawValue ?? 0, ordering: .relaxed) }
        var folders = folders[...]
        while let folder = folders.popFirst() {
            do throws(Failure) {
                let identifier: ItemIdentifier? = try index.read { transaction throws(Failure) in
                    guard state.listings[folder] == nil, try transaction.node(folder)?.isPopulated == false else { return nil }
                    return try self.identifier(of: folder, transaction)
                }
                if let identifier {
                    startListing(of: folder, identifier, isFirst: true)
                } else {
                    folders += state.walk.skipped(folder)
                }
            } catch {
                state.walk.stop()
                for rest in [folder] + folders { _ = state.walk.ended(rest) }
                throw error
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
            for identifier in identifiers { state.toList.add(identifier, at: now) }
            if beforeTelling { state.unscanned.formUnion(identifiers) }
        } catch {
            logger.error("folders could not be looked at again", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Something may have changed in this folder. Events come in bursts, so a moment passes first.
    func rescan(_ folder: ItemIdentifier, after delay: Duration = .milliseconds(50), isUsed: Bool = false) {
        state.toList.add(folder, at: clock.uptime() + delay, isUsed: isUsed)
    }

    /// Somebody who waits has nothing better to do with the line.
    var listingsMax: Int { state.isDraining ? max(configuration.listingsMax, FolderWalk.aheadCount) : configuration.listingsMax }

    func startListings() {
        let now = clock.uptime()
        while state.listings.count < listingsMax, let identifier = state.toList.next(at: now) {
            do throws(Failure) {
                guard let folder = try knownFolder(identifier) else {
                    // What is listed for the first time may have been read before this.
                    if state.listings.values.contains(where: { $0.identifier == identifier }) { rescan(identifier) }
                    state.unscanned.remove(identifier)
                    notePolled(identifier)
                    continue
                }
                if try isInMotion(identifier) {
                    // A move may take the provider minutes, and what its folders hold meanwhile says nothing.
                    state.inMotion.insert(identifier)
                } else if state.listings[folder] == nil {
                    startListing(of: folder, identifier, isFirst: false)
                } else {
                    rescan(identifier)
                }
            } catch {
                logger.error("a folder could not be listed", metadata: ["reason": "\(error.message)"])
                rescan(identifier, after: .seconds(1))
                return
            }
        }
    }

    private func startAnew(_ listing: Listing) {
        startListing(of: listing.folder, listing.identifier, isFirst: true, waiters: listing.waiters, readers: listing.readers)
    }

    private func isInMotion(_ identifier: ItemIdentifier) throws(Failure) -> Bool {
        guard state.running.values.contains(where: { $0.isMove }) else { return false }
        return try index.read { transaction throws(Failure) in try mayHaveMoved(identifier, since: .max, transaction) }
    }

    /// Some operation has moved something, or has failed to.
    func listWhatWasInMotion() {
        let now = clock.uptime()
        for listing in state.listings.values where listing.number == 0 { startAnew(listing) }
        for identifier in state.inMotion { state.toList.add(identifier, at: now) }
        state.inMotion = []
    }

    /// Nil for what is no folder here, or none whose content is known.
    func knownFolder(_ identifier: ItemIdentifier) throws(Failure) -> NodeID? {
        try index.read { transaction throws(Failure) in
            guard let node = try node(for: identifier, transaction), let row = try transaction.node(node) else { return nil }
            return row.isPopulated ? node : nil
        }
    }

    func startListing(
        of folder: NodeID, _ identifier: ItemIdentifier, isFirst: Bool, waiters: [HydrationReply] = [],
        readers: [HydrationReply] = []
    ) {
        state.made.listed(identifier)
        state.listingCount += 1
        let number = state.listingCount
        var listing = Listing(
            number: number, folder: folder, identifier: identifier, isFirst: isFirst, operationCount: state.operationCount,
            lastChange: try? index.read { transaction throws(Failure) in try transaction.lastChange() },
            started: clock.uptime(), waiters: waiters, readers: readers)
        listing.task = Task { [provider, mailbox, index] in
            do throws(ProviderError) {
                let reference: ItemReference? = try catchingFailure { () throws(Failure) in
                    try index.read { transaction throws(Failure) in
                        try transaction.remotePath(of: identifier).map { ItemReference(identifier: identifier, path: $0) }
                    }
                }
                guard let reference else { throw ProviderError(.notFound, "the folder is not known at the provider") }
                let waiting = WaitingPages()
                let rest = try await withTaskExecutorPreference(provider.executor) { () async throws(ProviderError) in
                    try await provider.enumerateAllItems(in: reference) { items in
                        // One page is stored while the provider makes the next one; it may be faster, but not by much.
                        await waiting.add()
                        mailbox.post {
                            waiting.remove()
                            $0.listed(folder, number, items, isLast: false)
                        }
                    }
                }
                mailbox.post { $0.listed(folder, number, rest, isLast: true) }
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
            let readers = listing.hasNews && !isLast ? listing.readers : []
            if !readers.isEmpty { listing.readers = [] }
            listing.hasNews = false
            state.listings[folder] = listing
            readers.forEach { $0(.success(())) }
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
        if listing.isFirst, try isInMotion(listing.identifier) {
            var waiting = listing
            // What comes of it still is not meant any more.
            waiting.number = 0
            state.listings[listing.folder] = waiting
        } else if listing.isFirst {
            startAnew(listing)
        } else {
            rescan(listing.identifier, after: .milliseconds(100))
            end(listing, .success(()))
        }
        return true
    }

    private func end(_ listing: Listing, _ outcome: Result<Void, Failure>) {
        state.unscanned.remove(listing.identifier)
        notePolled(listing.identifier)
        if state.made.listing == listing.identifier { state.made.listing = nil }
        (listing.waiters + listing.readers).forEach { $0(outcome) }
        // Whoever needs them asks for them.
        try? listAhead(after: listing.folder)
        if state.listings.isEmpty && state.running.isEmpty && state.verifying.isEmpty {
            state.touchedItems = [:]
            state.touchedPlaces = [:]
        }
    }

    func failListings(_ failure: Failure) {
        state.walk.stop()
        state.polled = []
        state.made.listing = nil
        for (folder, listing) in state.listings {
            listing.task?.cancel()
            (listing.waiters + listing.readers).forEach { $0(.failure(failure)) }
            state.listings[folder] = nil
            _ = state.walk.ended(folder)
            if !listing.isFirst { state.toList.add(listing.identifier, at: clock.uptime()) }
        }
    }
}

/// The items that a listing showed, of which there may be a million: by a number that is made of the identifier, 16 bytes each
/// at most. Two identifiers of one number, which is less likely than a broken disk, would keep the second from being missed.
struct SeenItems {
    private var numbers: Set<Int> = []

    var count: Int { numbers.count }
    mutating func insert(_ identifier: ItemIdentifier) { numbers.insert(identifier.hashValue) }
    func contains(_ identifier: ItemIdentifier) -> Bool { numbers.contains(identifier.hashValue) }
}

/// Pages of one listing that the engine has not stored yet: memory holds a few of them, not a million items.
private final class WaitingPages: Sendable {
    private static let countMax = 4
    private let count = Atomic<Int>(0)

    /// Returns when there is room, or when the task was cancelled.
    func add() async {
        while count.load(ordering: .relaxed) >= WaitingPages.countMax {
            do { try await Task.sleep(for: .milliseconds(2)) } catch { break }
        }
        count.wrappingAdd(1, ordering: .relaxed)
    }

    func remove() { count.wrappingSubtract(1, ordering: .relaxed) }
}

/// Runs index work inside a provider task.
func catchingFailure<Value>(_ body: () throws(Failure) -> Value) throws(ProviderError) -> Value {
    do throws(Failure) {
        return try body()
    } catch {
        throw ProviderError(.permanent, error.message)
    }
}
