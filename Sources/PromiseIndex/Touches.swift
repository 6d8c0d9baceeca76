package import PromiseCore
import PromiseSystem
import Synchronization

/// What was written lately, or changed in memory, whether the change feed has a line of it or not: a folder's dates, pins,
/// extended attributes, what waits for the provider. So that whoever asks a live question is told of all it can ask for.
///
/// Costs who writes one look at a number while nobody watches. The lock is a leaf, taken within the store's.
final class Touches: Sendable {
    private struct State {
        var nodes: Set<NodeID> = []
        /// Names of which only the entry was at hand.
        var entries: Set<EntryID> = []
    }

    private let watcherCount = Atomic<Int>(0)
    private let state = RankedMutex(.leaf, State())

    var isWatched: Bool { watcherCount.load(ordering: .relaxed) > 0 }

    func watch() { watcherCount.wrappingAdd(1, ordering: .sequentiallyConsistent) }

    func unwatch() {
        guard watcherCount.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue == 0 else { return }
        state.withLock { $0 = State() }
    }

    /// True: whoever watches has to be woken.
    func add(nodes: some Sequence<NodeID>, entries: [EntryID] = []) -> Bool {
        state.withLock { state in
            let wasEmpty = state.nodes.isEmpty && state.entries.isEmpty
            state.nodes.formUnion(nodes)
            state.entries.formUnion(entries)
            return wasEmpty && !(state.nodes.isEmpty && state.entries.isEmpty)
        }
    }

    func take() -> (nodes: Set<NodeID>, entries: Set<EntryID>) {
        state.withLock { state in
            defer { state = State() }
            return (state.nodes, state.entries)
        }
    }
}

extension Index {
    /// From now on `takeTouched` knows what is touched. As often as this is called `unwatchTouched` is to be called.
    package func watchTouched() { touches.watch() }
    package func unwatchTouched() { touches.unwatch() }

    /// Something about these nodes has changed that the index does not know of. From any thread, under no lock of the index.
    package func touch(_ nodes: some Sequence<NodeID>) {
        if touches.isWatched, touches.add(nodes: nodes) { wakeFollower() }
    }

    /// Nodes that were written to since the last call, in their order. For one follower.
    package func takeTouched() throws(Failure) -> [NodeID] {
        var (nodes, entries) = touches.take()
        if !entries.isEmpty {
            try read { transaction throws(Failure) in
                for id in entries {
                    if let entry = try transaction.entry(id) { nodes.insert(entry.node) }
                }
            }
        }
        return nodes.sorted { $0.rawValue < $1.rawValue }
    }
}
