import Logging
package import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

/// Fetches the small files that a program is about to open, because it opens a folder's files in order (`NeighbourPlan`).
///
/// Thread-safe. `opened` costs its caller the entry of a message; the work is done on a thread of its own.
package final class NeighbourPrefetch: Sendable {
    /// So many fetches run at a time.
    private static let runningMax = 16
    /// Files that were fetched ahead and not opened yet; more are forgotten, which costs a pause in the fetching ahead.
    private static let awaitedMax = 4096

    private struct State {
        var plan = NeighbourPlan()
        var waiting: [NodeID] = []
        var runningCount = 0
        /// `startFetches` is about to run.
        var isStarting = false
        /// Opened, in this order, and not looked at yet.
        var opened: [NodeID] = []
        /// Fetched ahead: opening one of these says that the program goes on.
        var awaited: Set<NodeID> = []
    }

    private let index: Index
    private let hydrator: Hydrator
    private let logger: Logger
    private let state = Mutex(State())
    private let awaitedCount = Atomic<Int>(0)
    private let pool = BlockingPool(name: "prefetch", threads: 1)

    init(index: Index, hydrator: Hydrator, logger: Logger) {
        self.index = index
        self.hydrator = hydrator
        self.logger = logger
    }

    /// A program opens a small file for reading. `isHere`: its content is local.
    package func opened(_ node: NodeID, isHere: Bool) {
        if isHere {
            // The usual case, a file that has nothing to do with us, costs one look at a number.
            guard awaitedCount.load(ordering: .relaxed) > 0, state.withLock({ $0.awaited.contains(node) }) else { return }
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
            let opened: Entry? = try index.read { transaction throws(Failure) in try transaction.entries(of: node).first }
            guard let opened else { return }
            let after = state.withLock { state in
                state.awaited.remove(node)
                awaitedCount.store(state.awaited.count, ordering: .relaxed)
                return state.plan.opened(opened.name, in: opened.parent)
            }
            if let after {
                let neighbours = try self.neighbours(in: opened.parent, after: after)
                state.withLock { $0.plan.loaded(neighbours, in: opened.parent) }
            }
            state.withLock { state in
                let next = state.plan.next(in: opened.parent)
                state.waiting += next
                if state.awaited.count > NeighbourPrefetch.awaitedMax { state.awaited = [] }
                state.awaited.formUnion(next)
                awaitedCount.store(state.awaited.count, ordering: .relaxed)
            }
            startFetches()
        } catch {
            logger.warning("files could not be fetched ahead", metadata: ["reason": "\(error.message)"])
        }
    }

    private func neighbours(in folder: NodeID, after name: FileName) throws(Failure) -> [NeighbourPlan.Neighbour] {
        try index.read { transaction throws(Failure) in
            try transaction.nodes(in: folder, after: name, limit: NeighbourPlan.loadCount).map { entry, node in
                let isWanted =
                    node.kind == .file && node.content != .whole && node.size <= HydrationPlan.smallFileMax
                    && node.pin != .onlineOnly && entry.identifier != nil
                return NeighbourPlan.Neighbour(node: node.id, name: entry.name, size: node.size, isWanted: isWanted)
            }
        }
    }

    private func startFetches() {
        state.withLock { $0.isStarting = false }
        while true {
            let node: NodeID? = state.withLock { state in
                guard state.runningCount < NeighbourPrefetch.runningMax, !state.waiting.isEmpty else { return nil }
                state.runningCount += 1
                return state.waiting.removeFirst()
            }
            guard let node else { return }
            _ = hydrator.hydrate(node) { [self] result in ended(result) }
        }
    }

    private func ended(_ result: Result<Void, Failure>) {
        let isWanted = state.withLock { state in
            state.runningCount -= 1
            // What a program needs fails for it alone; what nobody asked for is not tried against a provider in trouble.
            if case .failure = result { state.waiting = [] }
            if state.isStarting || state.waiting.isEmpty { return false }
            state.isStarting = true
            return true
        }
        if isWanted { pool.submit { [self] in startFetches() } }
    }
}
