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
    }

    private let state = Mutex(State())

    package init() {}

    package func note(_ node: NodeID) {
        state.withLock { state in
            if state.now.count < Self.countMax { state.now.insert(node) }
        }
    }

    /// Those noted since the call before the last one.
    package func take() -> Set<NodeID> {
        state.withLock { state in
            defer { (state.now, state.before) = ([], state.now) }
            return state.now.union(state.before)
        }
    }
}
