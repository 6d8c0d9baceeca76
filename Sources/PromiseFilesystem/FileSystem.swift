package import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseSync
package import PromiseSystem
import Synchronization

/// POSIX meaning by node: what each operation on the mount does to the index and to content, and what it answers.
///
/// Thread-safe. A change of the tree is one index transaction, committed before the answer. Nothing here waits for the
/// provider: what needs it is parked and answered by the engine's threads.
package final class FileSystem: FileSystemOperations {
    package struct Configuration: Sendable {
        /// How long a request may wait for the provider.
        package var requestDeadline: Duration
        package var exclusions = ExclusionRules()
        package var owners = ShownOwners()
        package var hydrationRules = HydrationRules()
        package var domainName: String
        package var coordination: CoordinationMode
        package var references: ReferenceMemory?
        /// How long removing and renaming wait for claims.
        package var nameDeadline = Duration.seconds(2)
        /// More of a content file is cut off before the index is asked for.
        package var cutWithIndexMax: UInt64 = 64 << 20

        package init(requestDeadline: Duration, domainName: String, coordination: CoordinationMode = .wait) {
            self.coordination = coordination
            self.requestDeadline = requestDeadline
            self.domainName = domainName
        }
    }

    /// This daemon is the only writer and invalidates what it changes itself, so the kernel may remember for long.
    static let lifetimeSeconds = 3600.0
    /// A mapping's writes move the modification time without the kernel telling us.
    static let writingLifetimeSeconds = 1.0

    let index: Index
    let content: ContentStore
    let engine: SyncEngine
    let clock: any TimeSource
    let logger: Logger
    let configuration: Configuration
    let opens: OpenTable
    /// Requests that the daemon before carried out and perhaps did not answer.
    let carriedOut: Set<UInt64>
    let orders = FolderOrders()
    package let attributeNews = AttributeNews()
    package let parking: Parking
    package let coordinator: Coordinator
    let remoteClaims: RemoteClaims
    package let stitching: Stitching
    let references = RankedMutex(.leaf, KernelReferences())
    let connection = Mutex<MountConnection?>(nil)
    private let ignores = IgnoreFiles()
    /// For fsync, removal of content files, and other calls that wait for the disk.
    let workers: BlockingPool
    /// Nodes whose content file has changed and whose row could not be: noted again until it works.
    /// True: with an edit that the content file does not tell of.
    let unnoted = Mutex([NodeID: Bool]())
    let mappings = RankedMutex(.leaf, MappingWatch())
    let mappingLookout: Lookout
    let callers = KnownCallers()
    let spares: SpareFiles
    let lastCopies: LastCopies
    let removedRoom: RemovedRoom
    let echoes: Echoes
    /// A serving thread is in an fsync.
    let isSynchronizing = Atomic(false)
    let leftNames = LeftNames()
    let fsyncs: ProviderBarriers
    /// What the provider has room for, when it says so.
    let quota = Mutex<(total: UInt64, available: UInt64)?>(nil)

    package init(
        index: Index, content: ContentStore, engine: SyncEngine, clock: any TimeSource, configuration: Configuration,
        record: MountRecord? = nil, workers: Workers = .threads, logger: Logger
    ) {
        self.workers = workers.makePool("filesystem", 4)
        self.index = index
        self.content = content
        self.engine = engine
        self.clock = clock
        self.configuration = configuration
        self.logger = logger
        stitching = Stitching(clock: clock)
        spares = SpareFiles(index: index, content: content, clock: clock, workers: self.workers)
        parking = Parking(
            clock: clock, limit: configuration.requestDeadline, lookout: workers.makeLookout("deadlines", clock))
        fsyncs = ProviderBarriers(index, engine, parking, clock, self.workers, workers.makeLookout("fsyncs", clock))
        mappingLookout = workers.makeLookout("mappings", clock)
        opens = OpenTable(record: record)
        lastCopies = LastCopies(
            index: index, content: content, opens: opens, hydrator: engine.hydrator,
            workers: self.workers, logger: logger)
        removedRoom = RemovedRoom(index, engine, clock, logger, workers.makeLookout("removed", clock))
        carriedOut = record?.carriedOut(lastBody: index.bodyAtOpening) ?? []
        coordinator = Coordinator(clock: clock, mode: configuration.coordination)
        remoteClaims = RemoteClaims(coordinator: coordinator)
        echoes = Echoes(index: index, clock: clock, logger: logger)
        mappingLookout.begin { [weak self] in self?.lookAtMappings() }
        removedRoom.begin { [opens] in opens.isWritten }
    }

    // MARK: Life

    package func mounted(_ connection: MountConnection) {
        self.connection.withLock { $0 = connection }
        echoes.begin(connection)
        content.onRemoval { [weak self] node in self?.contentRemoved(node) }
    }

    package func ended() {
        stitching.end()
        parking.end()
        fsyncs.end()
        coordinator.end()
        mappingLookout.end()
        removedRoom.end()
        echoes.stop()
        for node in opens.writtenNodes { noteWrites(of: node, isClosing: true) }
        noteWhatIsLeft()
        connection.withLock { $0 = nil }
        spares.stop()
        workers.stop()
    }

    package func interrupt(_ request: ParkedRequest) { parking.interrupt(request) }

    package var openCount: Int { opens.handleCount }
    /// Nodes that the kernel refers to, as far as this daemon has told it of them.
    package var kernelNodeCount: Int { references.withLock { $0.lookups.count } }
    package var hasPassthrough: Bool { backings != nil }
    package var passthroughProblem: String? { connection.withLock { $0?.passthroughProblem } }
    package func setQuota(total: UInt64, available: UInt64) { quota.withLock { $0 = (total, available) } }
    package var knownQuota: (total: UInt64, available: UInt64)? { quota.withLock { $0 } }

    var backings: (any BackingRegistrar)? { connection.withLock { $0?.backings } }
    var notifier: (any KernelNotifier)? { connection.withLock { $0?.notifier } }

    // MARK: Live queries

    /// The reply to an operation that changes names: given when live queries have heard of the change. Nobody can interrupt it
    /// meanwhile, as it has been carried out.
    func stitched<Value: Sendable>(_ reply: @escaping Reply<Value>) -> Reply<Value> {
        guard stitching.isWanted else { return reply }
        return { [stitching, index] result in
            guard case .success = result else { return reply(result) }
            if stitching.hold(until: index.newestChange, { reply(result) }) { index.wakeFollower() }
        }
    }

    // MARK: Waiting for a listing

    func withListing<Value: Sendable>(
        of folder: NodeID, reply: @escaping Reply<Value>, _ body: @escaping @Sendable () throws(Failure) -> Value?
    ) -> ParkedRequest? {
        withListing(of: { folder }, reply: reply, body)
    }

    /// As `withListing`, for a change of the tree: claims in its way are waited for first, and again
    /// where one was granted while a folder was being listed.
    func inTurn<Value: Sendable>(
        for access: UnawareAccess, _ caller: Caller,
        listing folder: @escaping @Sendable () -> NodeID, rounds: Int = 3,
        reply: @escaping Reply<Value>, _ body: @escaping @Sendable () throws(Failure) -> Value?
    ) -> ParkedRequest? {
        let again: @Sendable (Int) -> ParkedRequest? = { [self] rounds in
            inTurn(for: access, caller, listing: folder, rounds: rounds, reply: reply, body)
        }
        let turn = turn(for: access, caller, reply: reply) { again(rounds) }
        if case .taken(let parked) = turn { return parked }
        return withListing(of: folder, rounds: rounds, reply: stitched(reply), body) {
            [self] rounds in
            awaited(by: access, caller) == nil ? nil : { again(rounds) }
        }
    }

    /// Answers with what `body` returns; when it returns nil, lists `folder` at the provider first and asks it again. An
    /// operation on two folders may need both, one after the other.
    func withListing<Value: Sendable>(
        of folder: @escaping @Sendable () -> NodeID, extent: ListingWait<Value>.Extent = .whole,
        rounds: Int = 3, reply: @escaping Reply<Value>,
        _ body: @escaping @Sendable () throws(Failure) -> Value?,
        detour: @escaping ListingWait<Value>.Detour = { _ in nil }
    ) -> ParkedRequest? {
        do throws(Failure) {
            if let value = try body() {
                reply(.success(value))
                return nil
            }
        } catch {
            reply(.failure(error))
            return nil
        }
        let wait = ListingWait(
            engine: engine, parking: parking, folder: folder, extent: extent, reply: reply,
            body: body, detour: detour)
        return wait.begin(rounds: rounds)
    }

    // MARK: What every change of the tree does

    /// Puts an entry in line for the provider.
    /// `isGivingWay`: its new name is one to which programs rename what they make anew.
    func markPending(
        _ entry: Entry, isGivingWay: Bool = false, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard !entry.isExcluded else { return }
        let now = clock.now()
        let due = isGivingWay ? engine.removalDue(after: now) : engine.uploadDue(after: now)
        let renewal = PendingRenewal(now: now, due: due, bound: engine.unrestMax)
        try transaction.renewPending(entry.id, renewal)
    }

    func markPending(_ subject: Pending.Subject, _ transaction: borrowing Transaction) throws(Failure) {
        let due =
            switch subject {
            case .entry: engine.uploadDue(after: clock.now())
            case .deletion: engine.removalDue(after: clock.now())
            }
        var row = try transaction.pending(subject) ?? Pending(subject: subject, since: clock.now(), due: due)
        row.due = due
        row.attempts = 0
        row.error = nil
        row.message = nil
        try transaction.setPending(row)
    }

    /// Every name of a node whose content or metadata changed.
    func markPending(namesOf node: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        for entry in try transaction.entries(of: node) { try markPending(entry, transaction) }
    }

    /// A folder's times after a name in it came or went, and its links: 2 and one for each subfolder.
    func touch(_ folder: Node, subfolders change: Int = 0, _ transaction: borrowing Transaction) throws(Failure) {
        var folder = folder
        folder.countSubfolders(change)
        folder.modificationTime = clock.now()
        folder.changeTime = folder.modificationTime
        try transaction.update(folder)
    }

    /// The folder that a name is looked for, made or removed in.
    func folder(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Node {
        guard let folder = try transaction.node(id) else { throw Failure(.notFound, "the folder was removed") }
        guard folder.kind == .folder else { throw Failure(.notFolder, "node \(id) is not a folder") }
        return folder
    }

    var exclusion: Exclusion { Exclusion(rules: configuration.exclusions, content: content, opens: opens, ignores: ignores) }

    func identifier(of folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> ItemIdentifier? {
        try engine.identifier(of: folder, transaction)
    }
}

/// A folder that an operation chooses on its way: which one must be listed next.
final class Chosen: Sendable {
    private let state: Mutex<NodeID>
    init(_ folder: NodeID) { state = Mutex(folder) }
    var folder: NodeID {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
