import Logging
package import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

/// Fetches the files that a program is about to open, because it opens files in order
/// (`NeighbourPlan`).
///
/// Thread-safe. `opened` costs its caller the entry of a message; the work is done on a thread of
/// its own.
package final class NeighbourPrefetch: Sendable {
    /// So many fetches run at a time.
    private static let runningMax = 16
    /// Files that were fetched ahead and not opened yet; more are forgotten, which costs a pause in
    /// the fetching ahead.
    private static let awaitedMax = 4096
    /// Of the plan, after each file that was opened.
    private static let stepsMax = 256

    private struct State {
        var plan = NeighbourPlan()
        var waiting: [(node: NodeID, size: UInt64)] = []
        var runningCount = 0
        var byteCount: UInt64 = 0
        /// `startFetches` is about to run.
        var isStarting = false
        /// Opened, in this order, and not looked at yet.
        var opened: [NodeID] = []
        var wholeReads = WholeReads()
        /// Fetched ahead: opening one of these says that the program goes on.
        var awaited: Set<NodeID> = []
    }

    private let index: Index
    private let hydrator: Hydrator
    private let logger: Logger
    private let state = RankedMutex(.leaf, State())
    private let awaitedCount = Atomic<Int>(0)
    private let pool: BlockingPool

    init(index: Index, hydrator: Hydrator, pool: BlockingPool, logger: Logger) {
        self.index = index
        self.pool = pool
        self.hydrator = hydrator
        self.logger = logger
    }

    /// A program opens a small file for reading. `isHere`: its content is local.
    package func opened(_ node: NodeID, isHere: Bool) {
        if isHere {
            // The usual case, a file that has nothing to do with us, costs one look at a number.
            guard awaitedCount.load(ordering: .relaxed) > 0,
                state.withLock({ $0.awaited.contains(node) })
            else { return }
        }
        let isFirst = state.withLock { state in
            state.opened.append(node)
            return state.opened.count == 1
        }
        if isFirst { pool.submit { [self] in goOn() } }
    }

    func stop() { pool.stop() }

    private func goOn() {
        let opened = state.withLock { state in
            defer { state.opened = [] }
            return state.opened
        }
        for node in opened { goOn(from: node) }
    }

    private func goOn(from node: NodeID) {
        do throws(Failure) {
            guard let opened = try place(of: node) else { return }
            let wasAwaited = state.withLock { state in
                defer { awaitedCount.store(state.awaited.count, ordering: .relaxed) }
                return state.awaited.remove(node) != nil
            }
            try noteOpened(opened)
            try noteWholeReads(opened, wasAwaited: wasAwaited)
            for _ in 0..<NeighbourPrefetch.stepsMax {
                guard let step = state.withLock({ $0.plan.next(after: opened.parent) }) else {
                    break
                }
                switch step {
                case .load(let load): try self.load(load)
                case .fetch(let node, let size): fetch(node, size)
                }
            }
            startFetches()
        } catch {
            logger.warning(
                "files could not be fetched ahead", metadata: ["reason": "\(error.message)"])
        }
    }

    /// A folder counts as opened with the first file in it, and is told of before that.
    private func noteOpened(_ opened: Entry) throws(Failure) {
        var opened = [opened]
        while let folder = opened.last?.parent, state.withLock({ $0.plan.isNew(folder) }),
            let place = try place(of: folder)
        {
            opened.append(place)
        }
        for (index, entry) in opened.enumerated().reversed() {
            let above = index + 1 < opened.count ? opened[index + 1].parent : nil
            let loads = state.withLock { state in
                state.plan.opened(
                    NeighbourPlan.Place(entry: entry.id, name: entry.name), isFolder: index > 0,
                    in: entry.parent, above: above)
            }
            for load in loads { try self.load(load) }
        }
    }

    private func place(of node: NodeID) throws(Failure) -> Entry? {
        try index.read { transaction throws(Failure) in try transaction.entries(of: node).first }
    }

    private func load(_ load: NeighbourPlan.Load) throws(Failure) {
        let neighbours: [Neighbour]? = try index.read { transaction throws(Failure) in
            if load.after == nil, try transaction.node(load.folder)?.isPopulated != true {
                return nil
            }
            let rows =
                switch load.order {
                case .listing:
                    try transaction.nodes(
                        in: load.folder, numberedAfter: load.after?.entry,
                        limit: NeighbourPlan.loadCount)
                case .name:
                    try transaction.nodes(
                        in: load.folder, after: load.after?.name, limit: NeighbourPlan.loadCount)
                }
            return rows.map { entry, node in
                Neighbour(
                    entry: entry.id, node: node.id, name: entry.name, size: node.size,
                    use: use(of: node, entry))
            }
        }
        state.withLock { state in
            if let neighbours {
                state.plan.loaded(neighbours, for: load)
            } else {
                state.plan.isNotListed(load)
            }
        }
    }

    private func use(of node: Node, _ entry: Entry) -> Neighbour.Use {
        if node.kind == .folder { return .entered }
        guard node.kind == .file, node.content != .whole, node.pin != .onlineOnly,
            entry.identifier != nil
        else { return .passed }
        if node.size <= hydrator.sizes.smallFileMax { return .fetched }
        return node.size <= NeighbourPlan.sizeMax ? .fetchedForWholeReads : .passed
    }

    /// Who reads one file after the other that is not small to its end will do so with the next
    /// ones.
    private func noteWholeReads(_ opened: Entry, wasAwaited: Bool) throws(Failure) {
        let earlier = state.withLock { $0.wholeReads.earlier(in: opened.parent) }
        let (isSmall, isWhole): (Bool, Bool) = try index.read { transaction throws(Failure) in
            let node = try transaction.node(opened.node)
            var isWhole = false
            for file in earlier where try transaction.node(file)?.content == .whole {
                isWhole = true
            }
            return ((node?.size ?? 0) <= hydrator.sizes.smallFileMax, isWhole)
        }
        if isSmall { return }
        state.withLock { state in
            state.wholeReads.opened(
                opened.node, in: opened.parent, isFetchedAhead: wasAwaited, isWhole: isWhole)
            state.plan.readsWhole(in: state.wholeReads.folder)
        }
    }

    private func fetch(_ node: NodeID, _ size: UInt64) {
        state.withLock { state in
            state.waiting.append((node, size))
            if state.awaited.count > NeighbourPrefetch.awaitedMax { state.awaited = [] }
            state.awaited.insert(node)
            awaitedCount.store(state.awaited.count, ordering: .relaxed)
        }
    }

    private func startFetches() {
        state.withLock { $0.isStarting = false }
        while true {
            let byteCountMax = hydrator.byteCountAhead
            let next: (node: NodeID, size: UInt64)? = state.withLock { state in
                guard state.runningCount < NeighbourPrefetch.runningMax,
                    let next = state.waiting.first,
                    state.runningCount == 0 || state.byteCount.plus(next.size) <= byteCountMax
                else { return nil }
                state.runningCount += 1
                state.byteCount += next.size
                return state.waiting.removeFirst()
            }
            guard let (node, size) = next else { return }
            _ = hydrator.hydrate(node, inBackground: true) { [self] in ended(size, $0) }
        }
    }

    private func ended(_ size: UInt64, _ result: Result<Void, Failure>) {
        let isWanted = state.withLock { state in
            state.runningCount -= 1
            state.byteCount -= size
            // What a program needs fails for it alone; what nobody asked for is not tried against a
            // provider in trouble.
            if case .failure = result { state.waiting = [] }
            if state.isStarting || state.waiting.isEmpty { return false }
            state.isStarting = true
            return true
        }
        if isWanted { pool.submit { [self] in startFetches() } }
    }
}
