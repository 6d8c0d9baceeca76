import PromiseCore
import PromiseIndex
import Synchronization

/// For live queries: the items of which something has changed that the change feed has no line of.
///
/// A query that gathers hears of nothing yet, so what is touched meanwhile is kept until it has joined. On the hub's
/// thread, but for `open` and `close`.
final class TouchedItems: Sendable {
    private struct State {
        /// Live queries that were opened and not closed.
        var openCount = 0
        /// What was touched while one of them gathered.
        var kept: Set<NodeID> = []
        /// Looked at since the last `take`, for everybody.
        var seen: Set<NodeID> = []
    }

    private let index: Index
    private let state = Mutex(State())

    init(index: Index) { self.index = index }

    func open() {
        state.withLock { $0.openCount += 1 }
        index.watchTouched()
    }

    func close() {
        state.withLock { $0.openCount -= 1 }
        index.unwatchTouched()
    }

    /// What was touched since the last call. `memberCount`: queries that do not gather any more.
    func take(memberCount: Int) throws(Failure) -> [NodeID] {
        guard state.withLock({ $0.openCount > 0 }) else { return [] }
        let nodes = try index.takeTouched()
        state.withLock { state in
            state.seen = []
            if state.openCount > memberCount { state.kept.formUnion(nodes) }
        }
        return nodes
    }

    /// Every query that has joined was told of these nodes as they are now.
    func looked(at nodes: [NodeID]) {
        state.withLock { if $0.openCount > 0 { $0.seen.formUnion(nodes) } }
    }

    /// Those of them that nobody has looked at since they were taken.
    func rest(of nodes: [NodeID]) -> [NodeID] { state.withLock { state in nodes.filter { !state.seen.contains($0) } } }

    /// For queries that join now.
    var kept: [NodeID] { state.withLock { $0.kept.sorted { $0.rawValue < $1.rawValue } } }

    /// When no query gathers any more nothing need be kept.
    func forget(memberCount: Int) {
        state.withLock { if $0.openCount <= memberCount { $0.kept = [] } }
    }
}
