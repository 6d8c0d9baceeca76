package import PromiseCore
import Synchronization

/// What programs have asked for lately: at a provider that is polled their folders are looked at at
/// every poll, also where looking at everything takes longer. Thread-safe; from serving threads, so
/// it takes no more than a moment.
package final class UsedNodes: Sendable {
    /// Beyond that nobody looks at them all.
    package static let countMax = 256

    private struct State {
        var now: Set<NodeID> = []
        var before: Set<NodeID> = []
        /// Not used for at least a round, and not taken since.
        var fresh: Set<NodeID> = []
    }

    private let state = Mutex(State())
    private let onFresh: @Sendable () -> Void

    /// `onFresh`: a program uses something that was not used lately; called from its serving thread,
    /// and not again before `takeFresh`.
    package init(onFresh: @escaping @Sendable () -> Void = {}) { self.onFresh = onFresh }

    package func note(_ node: NodeID) {
        let isFirst = state.withLock { state in
            guard state.now.count < Self.countMax, state.now.insert(node).inserted,
                !state.before.contains(node)
            else { return false }
            state.fresh.insert(node)
            return state.fresh.count == 1
        }
        if isFirst { onFresh() }
    }

    /// Those noted since the call before the last one.
    package func take() -> Set<NodeID> {
        state.withLock { state in
            defer { (state.now, state.before) = ([], state.now) }
            return state.now.union(state.before)
        }
    }

    /// Those that were not used for long before.
    package func takeFresh() -> Set<NodeID> {
        state.withLock { state in
            defer { state.fresh = [] }
            return state.fresh
        }
    }
}
