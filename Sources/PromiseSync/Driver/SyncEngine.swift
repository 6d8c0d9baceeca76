package import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Who does work besides the engine's own thread.
package struct Workers: Sendable {
    package var makePool: @Sendable (_ name: String, _ threads: Int) -> BlockingPool
    /// Where tasks begin; nil: on Swift's cooperative pool.
    package var executor: (any TaskExecutor)?
    /// For what is looked at now and then.
    package var makeLookout: @Sendable (_ name: String, _ clock: any TimeSource) -> Lookout

    package init(
        executor: (any TaskExecutor)?, makePool: @escaping @Sendable (String, Int) -> BlockingPool,
        makeLookout: @escaping @Sendable (String, any TimeSource) -> Lookout
    ) {
        self.executor = executor
        self.makePool = makePool
        self.makeLookout = makeLookout
    }

    package static let threads = Workers(
        executor: nil, makePool: { BlockingPool(name: $0, threads: $1) },
        makeLookout: { Lookout(name: $0, clock: $1) })
}

/// Brings the local tree and the provider together: lists folders, follows changes, tells the
/// provider of local edits, keeps both versions of a conflict, evicts.
///
/// All decisions are `Machine`'s, which one thread owns. Other threads post events; provider calls
/// are tasks whose outcomes come back as events. Nothing but observations is stored, so the engine
/// may die at any point.
package final class SyncEngine: Sendable {
    package struct Configuration: Sendable {
        package var uploadDelay: Duration
        /// Before the provider is told that a name has gone: what is made under it in this time is the same document.
        package var removalDelay: Duration
        package var pollInterval: Duration
        package var cacheLimit: UInt64?
        /// How long what programs remove can come back; nil: it cannot.
        package var removedAge: Duration?
        /// In the names of conflict versions.
        package var hostName: String
        package var operationsMax = 16
        package var listingsMax = 4
        package var backoff = Backoff()
        package var fetchSizes = FetchSizes.usual
        /// How long the call may be silent that is made because others are: so long, and no longer, a
        /// silent provider seems to be there. A process that gets no processor hears of no answer.
        package var watchPatience = Duration.seconds(5)

        package init(
            uploadDelay: Duration, pollInterval: Duration, cacheLimit: UInt64?, hostName: String
        ) {
            self.uploadDelay = uploadDelay
            removalDelay = max(uploadDelay, .seconds(1))
            self.pollInterval = pollInterval
            self.cacheLimit = cacheLimit
            removedAge = nil
            self.hostName = hostName
        }
    }

    package enum Connection: Hashable, Sendable {
        case online
        /// It has not answered yet since the start. Nothing is done there, and whoever wants
        /// something of it waits.
        case connecting
        case offline(String)
        /// Reachable, but it refuses us: credentials or permissions.
        case failing(String)
    }

    /// What other threads may look at.
    struct Published {
        var connection = Connection.online
        var connectionSince: Timestamp?
        var nextTry: Timestamp?
        var pausedSince: Timestamp?
        var limits = Limits()
        var uploading: Set<NodeID> = []
        var runningSubjects: Set<Pending.Subject> = []
        var bytesUploaded: UInt64 = 0
        var looks = Looks()
        /// Files to be fetched that nobody waits for, the first of those that were asked for.
        var askedFetches: [NodeID] = []
        /// Questions whether the provider is back that somebody waits for.
        var probeCount = 0
        /// Looks that were asked for and that the engine has not begun.
        var looksWanted = 0
        /// The index or the disk fails the engine itself; nil when its last look went well.
        var trouble: Failure?
        var folderTroubles = FolderTroubles()
    }

    let index: Index
    let content: ContentStore
    let provider: any Provider
    let clock: any TimeSource
    let logger: Logger
    let configuration: Configuration
    let rootIdentifier: ItemIdentifier
    let mailbox = Mailbox()
    let answers: AnswerWatch
    let published = RankedMutex(.leaf, Published())
    package let hydrator: Hydrator
    package let uploadProgress: UploadProgress
    package let neighbours: NeighbourPrefetch
    /// Nil where the provider tells by itself what others change.
    package let used: UsedNodes?
    /// Whoever makes the index forget a content file gives it to this.
    package let remover: ContentRemover
    private let releases: ReleaseNotices
    private let roomPool: BlockingPool
    /// Reads what is digested.
    let diskPool: BlockingPool
    /// Where tasks begin; nil: on Swift's cooperative pool.
    let executor: (any TaskExecutor)?

    private struct Waiting {
        var replies: [UInt64: HydrationReply] = [:]
        var steps: [UInt64: @Sendable (Result<SteppedOperation?, Failure>) -> Void] = [:]
        var count: UInt64 = 0
    }
    private let waiting = Mutex(Waiting())
    private struct Observer { var value: any LocalTreeObserver }
    private let observer = Mutex<Observer?>(nil)
    /// What `keptBytes` found last, and when.
    let kept = Mutex<(time: Duration, byteCount: UInt64)?>(nil)
    private let thread = Mutex<OwnedThread?>(nil)
    /// `FolderWalk.mark`, or 0.
    let walkMark = Atomic<UInt64>(0)
    /// A folder that others remove is gone through by recursion, however deep they have nested it.
    private static let stackByteCount = 64 << 20
    /// Uptime, in nanoseconds, when the engine looks for work again by itself.
    let nextLook = Atomic<Int64>(0)
    /// Uptime, in nanoseconds, of the last change made here.
    let lastChange = Atomic<Int64>(.min / 2)

    /// The index must know the root item (setting `root.identifier`).
    package init(
        index: Index, content: ContentStore, provider: any Provider, clock: any TimeSource,
        rootIdentifier: ItemIdentifier, configuration: Configuration, workers: Workers = .threads,
        logger: Logger
    ) {
        self.index = index
        self.content = content
        self.provider = provider
        self.clock = clock
        uploadProgress = UploadProgress(clock)
        self.rootIdentifier = rootIdentifier
        roomPool = workers.makePool("room", 1)
        diskPool = workers.makePool("digests", 1)
        executor = workers.executor
        releases = ReleaseNotices(provider, executor: workers.executor)
        self.configuration = configuration
        self.logger = logger
        let answers = AnswerWatch(mailbox, clock)
        self.answers = answers
        hydrator = Hydrator(
            index: index, content: content, provider: provider, clock: clock, logger: logger,
            sizes: configuration.fetchSizes, answers: answers, executor: workers.executor,
            sleep: { [mailbox] in await mailbox.sleep(for: $0) },
            onTrouble: { [mailbox] node, problem in mailbox.post(.fetchTroubled(node, problem)) },
            onCompletion: { [mailbox] in mailbox.wake() },
            onIdle: { [mailbox] node in mailbox.post(.hydrationPaused(node)) })
        remover = ContentRemover(
            index: index, content: content, clock: clock,
            lookout: workers.makeLookout("content-removal", clock)
        ) { [logger] problem in
            logger.warning(
                "content files could not be removed", metadata: ["reason": "\(problem.message)"])
        }
        let hasFeed = provider.capabilities.contains(.changeFeed)
        used = hasFeed ? nil : UsedNodes { [mailbox] in mailbox.post(.cameBack) }
        neighbours = NeighbourPrefetch(
            index: index, hydrator: hydrator, pool: workers.makePool("prefetch", 1), logger: logger)
    }

    // MARK: Life

    /// `isConnected`: the provider answered just now. Else `asking` is the call that is to tell of
    /// it, which may have failed; when it has not returned after `patience` the provider counts as
    /// offline until it does.
    package func start(
        observer: any LocalTreeObserver, isConnected: Bool,
        asking: Attempt<Result<Item, ProviderError>>? = nil, patience: Duration = .zero
    ) {
        prepare(observer)
        if let asking, !isConnected {
            published.withLock { $0.connection = .connecting }
            mailbox.post(.started(isConnected: false, patience: patience))
            Task { [mailbox] in
                if let answer = await asking.outcome() {
                    mailbox.post(.rootAnswered(number: 0, answer))
                }
            }
        } else {
            mailbox.post(.started(isConnected: isConnected, patience: nil))
        }
        thread.withLock { thread in
            thread = OwnedThread(
                name: "sync-engine", stackByteCount: SyncEngine.stackByteCount
            ) { [self] in run(observer) }
        }
    }

    /// As `start`, without a thread: whoever has the pump is the engine's thread.
    package func startManually(
        observer: any LocalTreeObserver, isConnected: Bool
    ) -> EnginePump {
        prepare(observer)
        mailbox.post(.started(isConnected: isConnected, patience: nil))
        return EnginePump(self, observer)
    }

    private func prepare(_ observer: any LocalTreeObserver) {
        self.observer.withLock { $0 = Observer(value: observer) }
        hydrator.onFullDisk { [weak self, roomPool] node, count in
            // It waits for the disk, which a task must not.
            guard let engine = self else { return false }
            return await roomPool.run { engine.makeRoom(for: count, besides: node) }
        }
        hydrator.onRoom { [weak self] size, present in self?.roomForOne(of: size, present: present) }
    }

    /// The machine is a local of the engine's thread, so nobody else can touch it.
    private func run(_ observer: any LocalTreeObserver) {
        let pump = EnginePump(self, observer)
        var timeout: Duration? = .zero
        while let messages = mailbox.take(timeout: timeout) { timeout = pump.step(messages) }
        pump.end()
    }

    /// Ends the engine's thread; operations under way are cancelled, what they would have told
    /// stays pending.
    package func stop() {
        mailbox.post(.stopping)
        mailbox.close()
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
        neighbours.stop()
        hydrator.failAll(Failure(.interrupted, "the file system is being unmounted"))
        roomPool.stop()
        diskPool.stop()
        remover.stop()
        hydrator.transfers.end()
    }

    // MARK: What programs are told

    func show(_ notices: Notices) {
        guard let observer = observer.withLock({ $0?.value }) else { return }
        let staleness = Failure(.stale, "the provider has another version now")
        for node in notices.discarded { hydrator.discard(node, because: staleness) }
        for hollow in notices.hollow { hollow.empty(in: index, content) }
        for (item, version) in notices.released { releases.note(item, version) }
        for (node, generation) in notices.startedAgain { hydrator.startAgain(node, generation) }
        if !notices.replaced.isEmpty { observer.namesReplaced(notices.replaced) }
        for (node, generation) in notices.removedContent {
            hydrator.startAgain(node, generation)
            remover.remove(node, generation)
        }
        for (parent, name) in notices.entries { observer.entryChanged(in: parent, named: name) }
        for (node, content) in notices.nodes { observer.nodeChanged(node, content: content) }
        if !notices.tree.isEmpty { observer.treeChanged(notices.tree) }
        notices.hydrate.forEach(hydrator.hydrateInBackground)
    }

    var treeObserver: (any LocalTreeObserver)? { observer.withLock { $0?.value } }

    func wait(_ reply: @escaping HydrationReply) -> Waiter {
        waiting.withLock { waiting in
            waiting.count += 1
            waiting.replies[waiting.count] = reply
            return Waiter(number: waiting.count)
        }
    }

    func reply(_ waiter: Waiter, _ result: Result<Void, Failure>) {
        let reply = waiting.withLock { waiting in
            waiting.steps[waiter.number] = nil
            return waiting.replies.removeValue(forKey: waiter.number)
        }
        reply?(result)
    }

    func reply(_ waiter: Waiter, _ operation: SteppedOperation?) {
        let step = waiting.withLock { waiting in
            waiting.replies[waiter.number] = nil
            return waiting.steps.removeValue(forKey: waiter.number)
        }
        step?(.success(operation))
    }

    /// Carries out one piece of pending work, and then nothing more by itself until `lookNow` or
    /// `setDraining`. Replies when the provider has answered; nil: there was nothing that could be
    /// done. From any thread.
    package func step(reply: @escaping @Sendable (Result<SteppedOperation?, Failure>) -> Void) {
        let waiter = wait { result in
            if case .failure(let failure) = result { reply(.failure(failure)) }
        }
        waiting.withLock { $0.steps[waiter.number] = reply }
        mailbox.post(.stepWanted(waiter))
    }

    // MARK: Changes made here

    /// The index has new pending work, due at `uploadDue`. Wakes the engine only if it would sleep
    /// longer than that.
    package func notePending() {
        let now = clock.uptime()
        lastChange.store(now.nanoseconds, ordering: .relaxed)
        let due = (now + configuration.uploadDelay).nanoseconds
        if nextLook.load(ordering: .relaxed) > due { mailbox.wake() }
    }

    /// When a change made now is to be told to the provider.
    package func uploadDue(after now: Timestamp) -> Timestamp {
        now.advanced(by: configuration.uploadDelay)
    }

    /// What never rests for the upload delay is sent after so long.
    package var unrestMax: Duration { Unrest.max(configuration) }

    /// The same of a removal, and of a name that gave way to a document that is made anew.
    package func removalDue(after now: Timestamp) -> Timestamp {
        now.advanced(by: configuration.removalDelay)
    }
}
