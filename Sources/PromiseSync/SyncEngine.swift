package import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Brings the local tree and the provider together: lists folders, follows changes, tells the provider of local edits,
/// keeps both versions of a conflict, evicts.
///
/// All decisions are made on one thread, from what the index says; provider calls are tasks whose outcomes come back as
/// messages. Nothing but observations is stored, so the engine may die at any point.
package final class SyncEngine: Sendable {
    package struct Configuration: Sendable {
        package var uploadDelay: Duration
        package var pollInterval: Duration
        package var cacheLimit: UInt64?
        /// In the names of conflict versions.
        package var hostName: String
        package var operationsMax = 16
        package var listingsMax = 4
        package var backoff = Backoff()

        package init(uploadDelay: Duration, pollInterval: Duration, cacheLimit: UInt64?, hostName: String) {
            self.uploadDelay = uploadDelay
            self.pollInterval = pollInterval
            self.cacheLimit = cacheLimit
            self.hostName = hostName
        }
    }

    package enum Connection: Hashable, Sendable {
        case online
        case offline(String)
        /// Reachable, but it refuses us: credentials or permissions.
        case failing(String)
    }

    /// What other threads may look at.
    struct Published {
        var connection = Connection.online
        var uploading: Set<NodeID> = []
        var runningSubjects: Set<Pending.Subject> = []
        var bytesUploaded: UInt64 = 0
        /// Folder listings, rescans and verifications not finished yet.
        var isLooking = false
        /// Files to be fetched that nobody waits for, the first of those that were asked for.
        var askedFetches: [NodeID] = []
        /// Questions whether the provider is back that somebody waits for, asked or about to be.
        var probeCount = 0
        /// The index or the disk fails the engine itself; nil when its last look went well.
        var trouble: Failure?
    }

    /// Owned by the engine's thread.
    struct State {
        var running: [Pending.Subject: Operation] = [:]
        var listings: [NodeID: Listing] = [:]
        var listingCount = 0
        var walk = FolderWalk()
        /// Folders to list again, and when at the earliest (uptime).
        var toList = FolderQueue()
        /// To be looked at again when what they are in has been moved.
        var inMotion: Set<ItemIdentifier> = []
        /// Of the folders that a provider without a feed named last: those that were not listed since; and when that
        /// began, and when all had been.
        var polled: Set<ItemIdentifier> = []
        var pollBegan: Duration = .zero
        var pollEnded: Duration = .zero
        /// Of the feed; nil before it has begun.
        var anchor: Anchor?
        /// Questions for what is new that somebody waits for.
        var newsAskedCount = 0
        var made = MadeFolders()
        /// Items that a listing no longer showed, to be asked for one by one.
        var missing: Set<ItemIdentifier> = []
        /// Of these, those that a listing showed at another place.
        var arrivals: [ItemIdentifier: Item] = [:]
        /// The store is asked by place and has shown numbers of items.
        var hasNumbers = false
        /// Folders to be looked at once before the provider is told anything: what it was told last may have arrived.
        var unscanned: Set<ItemIdentifier> = []
        var verifying: Set<ItemIdentifier> = []
        /// What our own operations changed, and when: listings older than that are not believed about it.
        var touchedItems: [ItemIdentifier: Int] = [:]
        var touchedPlaces: [Place: Int] = [:]
        var operationCount = 0
        /// Folders that a move of ours may have moved without an answer: when they were asked for, and those that were seen where
        /// they had been.
        var placesAsked: [ItemIdentifier: Duration] = [:]
        var placesSeen: Set<ItemIdentifier> = []
        /// Identifiers made for items of a store that has none: see `SyncEngine+Identity.swift`.
        var freshCount = 0
        /// Subjects that wait for a folder to be made at the provider.
        var blocked: [NodeID: Set<Pending.Subject>] = [:]
        /// Work that waits for whoever has a claim on its item.
        var waitingForClaims: Set<Pending.Subject> = []
        var hasDivergences = true
        var probeAttempts = 0
        var isProbing = false
        var feed: Task<Void, Never>?
        var usedPoll: Task<Void, Never>?
        var fetches = BackgroundFetches()
        var lastEvictionCheck: Duration = .zero
        /// The last look found too little room, so the disk is looked at again although nobody calls.
        var isShortOfRoom = false
        /// Somebody waits for the provider to have everything: quiet times are cut short.
        var isDraining = false
    }

    /// Uploads wait for a moment this long without a change here, but no longer than `patience`.
    static let quietMoment = Duration.milliseconds(500)
    static let patience = Duration.seconds(10)

    struct Place: Hashable {
        var parent: ItemIdentifier
        var name: FileName
    }

    let index: Index
    let content: ContentStore
    let provider: any Provider
    let clock: any TimeSource
    let logger: Logger
    let configuration: Configuration
    let rootIdentifier: ItemIdentifier
    let mailbox = Mailbox()
    let published = Mutex(Published())
    package let hydrator: Hydrator
    package let neighbours: NeighbourPrefetch
    /// Nil where the provider tells by itself what others change.
    package let used: UsedNodes?
    /// Whoever makes the index forget a content file gives it to this.
    package let remover: ContentRemover
    private let roomPool = BlockingPool(name: "room", threads: 1)

    // Unsafe because only the engine's thread touches it, from `run()` on; a thread is not an isolation domain to Swift.
    nonisolated(unsafe) var state = State()
    // Unsafe because it is set once, in `start`, before the engine's thread exists.
    nonisolated(unsafe) var observer: (any LocalTreeObserver)!
    private let thread = Mutex<OwnedThread?>(nil)
    /// `FolderWalk.mark`, or 0.
    let walkMark = Atomic<UInt64>(0)
    /// Uptime, in nanoseconds, when the engine looks for work again by itself.
    private let nextLook = Atomic<Int64>(0)
    /// Uptime, in nanoseconds, of the last change made here.
    private let lastChange = Atomic<Int64>(.min / 2)

    /// The index must know the root item (setting `root.identifier`).
    package init(
        index: Index, content: ContentStore, provider: any Provider, clock: any TimeSource, rootIdentifier: ItemIdentifier,
        configuration: Configuration, logger: Logger
    ) {
        self.index = index
        self.content = content
        self.provider = provider
        self.clock = clock
        self.rootIdentifier = rootIdentifier
        self.configuration = configuration
        self.logger = logger
        hydrator = Hydrator(
            index: index, content: content, provider: provider, clock: clock, logger: logger,
            onTrouble: { [mailbox] node, problem in mailbox.post { $0.fetchTroubled(node, problem) } },
            onCompletion: { [mailbox] in mailbox.wake() },
            onIdle: { [mailbox] node in mailbox.post { $0.hydrationPaused(node) } })
        remover = ContentRemover(index: index, content: content) { [logger] problem in
            logger.warning("content files could not be removed", metadata: ["reason": "\(problem.message)"])
        }
        used = provider.capabilities.contains(.changeFeed) ? nil : UsedNodes()
        neighbours = NeighbourPrefetch(index: index, hydrator: hydrator, logger: logger)
    }

    // MARK: Life

    /// `isConnected`: the provider answered just now.
    package func start(observer: any LocalTreeObserver, isConnected: Bool) {
        self.observer = observer
        hydrator.onFullDisk { [weak self, roomPool] node, count in
            // It waits for the disk, which a task must not.
            guard let engine = self else { return false }
            return await roomPool.run { engine.makeRoom(for: count, besides: node) }
        }
        if !isConnected { mailbox.post { $0.lostConnection("the provider could not be reached at the start") } }
        mailbox.post { engine in
            engine.state.fetches.lookForPinned()
            engine.rescanEverything(beforeTelling: true)
            engine.startFeed()
        }
        thread.withLock { $0 = OwnedThread(name: "sync-engine") { [self] in run() } }
    }

    /// Ends the engine's thread; operations under way are cancelled, what they would have told stays pending.
    package func stop() {
        mailbox.post { engine in
            engine.state.feed?.cancel()
            engine.state.usedPoll?.cancel()
            engine.state.running.values.forEach { $0.task?.cancel() }
            engine.state.listings.values.forEach { $0.task?.cancel() }
            engine.storeOrLog(engine.observer.takeRecentUses())
        }
        mailbox.close()
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
        neighbours.stop()
        hydrator.failAll(Failure(.interrupted, "the file system is being unmounted"))
        roomPool.stop()
        remover.stop()
    }

    private func run() {
        var timeout: Duration? = .zero
        while let messages = mailbox.take(timeout: timeout) {
            messages.forEach { $0(self) }
            // Until the look is over nobody can rely on it to see what is being added.
            nextLook.store(.max, ordering: .sequentiallyConsistent)
            timeout = lookForWork()
            nextLook.store(timeout.map { (clock.uptime() + $0).nanoseconds } ?? .max, ordering: .sequentiallyConsistent)
        }
    }

    /// Does what is due and says when to look again; nil: when somebody calls.
    private func lookForWork() -> Duration? {
        defer { observer.remoteChangesFollowed() }
        do throws(Failure) {
            evictIfNeeded()
            try applyDivergences()
            guard isOnline else {
                publishActivity()
                return nextEvictionCheck
            }
            startListings()
            verifyMissing()
            try startFetches()
            try listMade()
            if state.unscanned.isEmpty { try startOperations() }
            publishActivity()
            published.withLock { $0.trouble = nil }
            return try nextDue()
        } catch {
            published.withLock { $0.trouble = error }
            logger.error("sync could not go on", metadata: ["reason": "\(error.message)"])
            return .seconds(5)
        }
    }

    /// How long until programs have left the mount alone for a moment: an unpacked archive is told to the provider when it
    /// is there, not against it. Zero when they have, and when somebody waits for the provider.
    var restUntilQuiet: Duration {
        if state.isDraining { return .zero }
        let quiet = min(configuration.uploadDelay, SyncEngine.quietMoment)
        return max(.zero, .nanoseconds(lastChange.load(ordering: .relaxed)) + quiet - clock.uptime())
    }

    private func nextDue() throws(Failure) -> Duration? {
        var candidates: [Duration] = []
        if let next = nextEvictionCheck { candidates.append(next) }
        if let next = state.fetches.nextPass { candidates.append(max(next - clock.uptime(), .milliseconds(1))) }
        if occupiedCount < configuration.operationsMax,
            let due = try index.read({ transaction throws(Failure) in try transaction.nextPendingDue() })
        {
            // Work that is due but runs already must not make the engine spin.
            let soonest = max(restUntilQuiet, .milliseconds(state.running.isEmpty ? 5 : 50))
            candidates.append(max(.nanoseconds(due.rawValue - clock.now().rawValue), soonest))
        }
        if state.listings.count < listingsMax, let due = state.toList.nextDue() {
            candidates.append(max(due - clock.uptime(), .milliseconds(1)))
        }
        if let due = state.made.due(isBusy: !state.running.isEmpty) {
            candidates.append(max(due - clock.uptime(), .milliseconds(1)))
        }
        return candidates.min()
    }

    private func publishActivity() {
        let subjects = Set(state.running.keys)
        let uploading = Set(state.running.values.compactMap(\.node))
        // Nobody waits for a look into what was made here.
        let isListing = state.listings.values.contains { $0.identifier != state.made.listing }
        let isToList = isListing || !state.toList.isEmpty || !state.inMotion.isEmpty || state.newsAskedCount > 0
        let isLooking = isToList || !state.verifying.isEmpty || !state.missing.isEmpty
        published.withLock { published in
            published.runningSubjects = subjects
            published.uploading = uploading
            published.isLooking = isLooking
        }
    }

    // MARK: What others ask

    package var connection: Connection { published.withLock { $0.connection } }
    package var trouble: Failure? { published.withLock { $0.trouble } }
    package var bytesUploaded: UInt64 { published.withLock { $0.bytesUploaded } }
    package var uploadingCount: Int { published.withLock { $0.runningSubjects.count } }
    package func isUploading(_ node: NodeID) -> Bool { published.withLock { $0.uploading.contains(node) } }
    package func isRunning(_ subject: Pending.Subject) -> Bool { published.withLock { $0.runningSubjects.contains(subject) } }

    /// The index has new pending work, due at `uploadDue`. Wakes the engine only if it would sleep longer than that.
    package func notePending() {
        let now = clock.uptime()
        lastChange.store(now.nanoseconds, ordering: .relaxed)
        let due = (now + configuration.uploadDelay).nanoseconds
        if nextLook.load(ordering: .relaxed) > due { mailbox.wake() }
    }

    /// When a change made now is to be told to the provider.
    package func uploadDue(after now: Timestamp) -> Timestamp { now.advanced(by: configuration.uploadDelay) }

    // MARK: Identifiers and nodes

    func node(for identifier: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) -> NodeID? {
        if identifier == rootIdentifier { return .root }
        return try transaction.entry(for: identifier)?.node
    }

    /// The provider's name of a folder or of a node's first name; nil while the provider has none. Within a transaction.
    package func identifier(of node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> ItemIdentifier? {
        if node == .root { return rootIdentifier }
        return try transaction.entries(of: node).first?.identifier
    }

    package func reference(
        to identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemReference? {
        guard let path = try transaction.remotePath(of: identifier) else { return nil }
        return ItemReference(identifier: identifier, path: path)
    }
}
