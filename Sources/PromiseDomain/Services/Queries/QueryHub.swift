import Logging
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseQuery
import PromiseSync
import PromiseSystem
import Synchronization

/// Follows the change feed for everybody who wants to know: live queries, claims and presenters, followers of the feed.
///
/// One thread; what it costs depends on what changed and on how many follow, not on how much there is. While nobody follows
/// it sleeps, and changes of the tree cost one look at a number.
final class QueryHub: Sendable {
    private struct State {
        var queries: [ObjectIdentifier: LiveQuery] = [:]
        var joining: [LiveQuery] = []
        /// Those that joined and have not left.
        var members: Set<ObjectIdentifier> = []
        var openCount = 0
        var isStopped = false
    }

    private struct Calls {
        /// The thread sleeps until somebody wants to hear of changes.
        var isIdle = false
        var isCalled = false
        /// The change after which whoever calls wants to hear; nil: from whenever it is heard.
        var position: Int64?
    }

    private static let queryCountMax = 256
    /// Nodes looked at while the index's lock is held.
    private static let nodeCountMax = 200
    private static let changeCountMax = 100

    let containers: Containers
    private let index: Index
    private let filesystem: FileSystem
    private let engine: SyncEngine
    private let logger: Logger
    private let reader: AttributeReader
    private let state = Mutex(State())
    private let thread = Mutex<OwnedThread?>(nil)
    private let pool = BlockingPool(name: "queries", threads: 2)
    private let waiters = FeedWaiters()
    private let touched: TouchedItems
    /// Somebody may want to hear of changes who did not before.
    private let calls = Monitor(Calls())
    /// Who else hears of changes.
    private let listeners: Mutex<[any ChangeListener]>

    init(
        domainName: String, index: Index, filesystem: FileSystem, engine: SyncEngine, _ containers: Containers,
        logger: Logger
    ) {
        self.containers = containers
        reader = AttributeReader(domainName: domainName, filesystem: filesystem, engine: engine)
        self.index = index
        self.filesystem = filesystem
        self.engine = engine
        self.logger = logger
        listeners = Mutex([waiters])
        touched = TouchedItems(index: index)
    }

    // MARK: - Life

    func start() {
        containers.whenChanged { [weak self] in self?.containersChanged() }
        thread.withLock { $0 = OwnedThread(name: "changes") { [self] in follow() } }
    }

    /// What is in a container by now, or not any more, is no change of the tree.
    private func containersChanged() {
        for query in state.withLock({ Array($0.queries.values) + $0.joining }) where query.isOutdated { query.reset() }
    }

    /// Ends every query; must come before the index is closed.
    func stop() {
        let queries = state.withLock { state in
            state.isStopped = true
            defer {
                state.queries = [:]
                state.joining = []
            }
            return Array(state.queries.values) + state.joining
        }
        for query in queries { query.end() }
        filesystem.stitching.end()
        wake(isJoining: true)
        thread.withLock { thread in
            defer { thread = nil }
            return thread
        }?.join()
        pool.stop()
    }

    func waitForChange(after sequence: Int64, timeout: Duration) async {
        await waiters.wait(after: sequence, timeout: timeout) { self.wake() }
    }

    /// To be called when somebody wants to hear of changes: queries, waiters, presenters, claims. `position`: after which
    /// change, for those who do not know it themselves; taken before they are entered. Costs little while changes are being
    /// followed already. `isJoining`: to be looked at without waiting for the next change.
    func wake(from position: Int64? = nil, isJoining: Bool = false) {
        let isIdle = calls.withLock { calls in
            guard calls.isIdle else { return false }
            calls.isCalled = true
            if let position { calls.position = min(calls.position ?? position, position) }
            return true
        }
        if isIdle { calls.update { _ in } }
        if isJoining { index.wakeFollower() }
    }

    private var isWanted: Bool {
        if filesystem.coordinator.isActive || waiters.isWanted { return true }
        return state.withLock { $0.isStopped || !$0.queries.isEmpty || !$0.joining.isEmpty }
    }

    func listen(_ listener: any ChangeListener) { listeners.withLock { $0.append(listener) } }

    // MARK: - Queries

    func open(_ request: QueryRequest) throws(Failure) -> LiveQuery {
        try state.withLock { state throws(Failure) in
            guard !state.isStopped else { throw Failure(.interrupted, "the domain is being unmounted") }
            guard state.openCount < QueryHub.queryCountMax else {
                throw Failure(.busy, "\(QueryHub.queryCountMax) queries run already; end one of them first")
            }
            state.openCount += 1
        }
        if request.isLive { touched.open() }
        return LiveQuery(request, self)
    }

    /// The query was opened and nobody runs it any more.
    func close(_ query: LiveQuery) {
        if query.request.isLive { touched.close() }
        state.withLock { $0.openCount -= 1 }
    }

    /// From its position on the query hears of changes.
    func join(_ query: LiveQuery) {
        // Who wants changes together does not want each at once.
        if query.request.batching == nil { filesystem.stitching.enter(query) }
        let isStopped = state.withLock { state in
            if !state.isStopped {
                state.joining.append(query)
                state.members.insert(ObjectIdentifier(query))
            }
            return state.isStopped
        }
        if isStopped {
            filesystem.stitching.leave(query)
            return query.end()
        }
        wake(isJoining: true)
        if query.isOutdated { query.reset() }
    }

    /// A query's reader has been given what was found for it.
    func delivered() { filesystem.stitching.delivered() }

    /// Returns when live queries have heard of everything that has changed so far.
    func settle() async {
        guard filesystem.stitching.isWanted else { return }
        await withCheckedContinuation { continuation in
            let mustWake = filesystem.stitching.hold(until: index.newestChange) { continuation.resume() }
            if mustWake { index.wakeFollower() }
        }
    }

    func leave(_ query: LiveQuery) {
        filesystem.stitching.leave(query)
        state.withLock { state in
            state.queries[ObjectIdentifier(query)] = nil
            state.members.remove(ObjectIdentifier(query))
            state.joining.removeAll { $0 === query }
        }
    }

    /// For calls that wait for the index. Throws `.interrupted` when the domain ends.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (Index) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await pool.run { [self] () throws(Failure) in
            // The index is about to be closed.
            if state.withLock({ $0.isStopped }) { throw Failure(.interrupted, "the domain is being unmounted") }
            return try body(index)
        }
    }

    func attributes(
        of item: IndexedItem, _ needs: ItemAttributes.Needs, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemAttributes {
        try reader.attributes(of: item, needs, transaction)
    }

    // MARK: - Following

    private func follow() {
        var newest: Int64 = 0
        var position: Int64 = 0
        while true {
            if let call = waitUntilWanted() {
                let last = try? index.read { transaction throws(Failure) in try transaction.lastChange() }
                // A call of long ago may have been heard already.
                position = max(call.position ?? last ?? position, position)
                newest = 0
                waiters.told(upTo: position)
            }
            newest = index.waitForChange(after: newest, timeout: filesystem.stitching.timeUntilDeadline())
            filesystem.stitching.giveUpLate()
            let (joining, isStopped) = state.withLock { state in
                defer { state.joining = [] }
                return (state.joining, state.isStopped)
            }
            if isStopped { return }
            do throws(Failure) {
                // Of a query that joins later than this look what is touched is kept.
                let memberCount = state.withLock { $0.members.count - $0.joining.count }
                let nodes = try touched.take(memberCount: memberCount - joining.count)
                for query in joining {
                    try advance([query], from: query.position.withLock { $0 }, upTo: position)
                    try evaluate(touched.kept, for: [query])
                    query.signal()
                    state.withLock { state in
                        if state.members.contains(ObjectIdentifier(query)) { state.queries[ObjectIdentifier(query)] = query }
                        if state.isStopped { query.end() }
                    }
                    query.caughtUp()
                }
                touched.forget(memberCount: memberCount)
                position = try advance(nil, from: position, upTo: .max)
                try tell(of: nodes)
                filesystem.stitching.told(upTo: max(newest, position))
            } catch {
                if state.withLock({ $0.isStopped }) { return }
                logger.warning("changes could not be followed", metadata: ["reason": "\(error.message)"])
                for query in joining + state.withLock({ Array($0.queries.values) }) { query.reset() }
            }
        }
    }

    /// Whoever changes the tree wakes nobody while nobody wants to hear of it. Nil: somebody does already.
    private func waitUntilWanted() -> Calls? {
        // Said before looking: who comes in between is seen here, or sees that this sleeps.
        calls.withLock { $0.isIdle = true }
        if isWanted {
            calls.withLock { $0 = Calls() }
            return nil
        }
        return calls.wait { calls -> Calls? in
            guard calls.isCalled else { return nil }
            defer { calls = Calls() }
            return calls
        }
    }

    /// Tells of the changes after one number up to another; nil: to everybody who follows. Returns the last one told.
    @discardableResult
    private func advance(_ only: [LiveQuery]?, from start: Int64, upTo end: Int64) throws(Failure) -> Int64 {
        var position = start
        while position < end {
            let queries = only ?? state.withLock { Array($0.queries.values) }
            let (changes, first) = try index.read { transaction throws(Failure) in
                (try transaction.changes(since: position, limit: QueryHub.changeCountMax), try transaction.firstChange())
            }
            if first > position + 1 && position > 0 || first > 1 && position == 0 {
                for query in queries { query.reset() }
            }
            guard let last = changes.last, position < last.sequence else { break }
            try tell(queries.filter { !$0.isOverflowed }, of: changes.filter { $0.sequence <= end }, areAll: only == nil)
            for query in queries { query.signal(upTo: min(last.sequence, end)) }
            if only == nil { for listener in listeners.withLock({ $0 }) { listener.changed(changes) } }
            position = last.sequence
        }
        return position
    }

    private func tell(_ queries: [LiveQuery], of changes: [Change], areAll: Bool) throws(Failure) {
        guard !queries.isEmpty else { return }
        var nodes: [NodeID] = []
        var isIn: Set<NodeID> = []
        for change in changes {
            for number in change.node.rawValue..<change.node.rawValue + UInt64(change.count) {
                let node = NodeID(number)
                // A change that follows another of the same node is seen with it: what is looked at is how things are now.
                if isIn.insert(node).inserted { nodes.append(node) }
            }
        }
        let moved = changes.filter { $0.kind == .moved }.map(\.node)
        try evaluate(nodes, for: queries)
        if areAll { touched.looked(at: nodes) }
        for folder in Set(moved) { try evaluate(below: folder, for: queries) }
    }

    /// Of what the change feed has no line of.
    private func tell(of nodes: [NodeID]) throws(Failure) {
        let nodes = touched.rest(of: nodes)
        let queries = state.withLock { Array($0.queries.values) }.filter { !$0.isOverflowed }
        guard !nodes.isEmpty, !queries.isEmpty else { return }
        try evaluate(nodes, for: queries)
        for query in queries { query.signal() }
    }

    private func evaluate(_ nodes: [NodeID], for queries: [LiveQuery]) throws(Failure) {
        var rest = nodes[...]
        let weight = queries.reduce(1) { $0 + $1.weight }
        let count = min(max(LiveQuery.pageWeight / weight, 1), QueryHub.nodeCountMax)
        while !rest.isEmpty {
            try index.read { transaction throws(Failure) in
                for node in rest.prefix(count) {
                    let items = try transaction.items(of: [node])
                    for query in queries { try query.update(node, items, transaction) }
                }
            }
            rest = rest.dropFirst(count)
            filesystem.stitching.giveUpLate()
        }
    }

    /// What is below a folder that was moved or renamed has other paths now.
    private func evaluate(below folder: NodeID, for queries: [LiveQuery]) throws(Failure) {
        var waiting = [folder]
        while let next = waiting.popLast() {
            var last: FileName?
            repeat {
                let (page, folders) = try index.read { transaction throws(Failure) in
                    let page = try transaction.children(of: next, after: last, limit: QueryHub.nodeCountMax)
                    var folders: [NodeID] = []
                    for entry in page where try transaction.node(entry.node)?.kind == .folder { folders.append(entry.node) }
                    return (page, folders)
                }
                waiting += folders
                last = page.last?.name
                try evaluate(page.map(\.node), for: queries)
                for query in queries { query.signal() }
            } while last != nil
        }
    }
}

/// Hears of changes after they have happened, on the hub's thread.
protocol ChangeListener: Sendable {
    func changed(_ changes: [Change])
}
