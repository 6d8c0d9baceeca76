import Logging
package import PromiseCore
import PromiseIndex
import PromiseSystem
import Synchronization

// Fetching what no program waits for.

extension SyncEngine {
    /// Of those that were asked for, so many are shown to people.
    private static let shownFetchesMax = 1_000

    /// Content of these files comes here, in their order, a few at a time. From any thread.
    package func fetchInBackground(_ nodes: [NodeID]) { mailbox.post { $0.state.fetches.ask(for: nodes) } }

    /// Files may have been pinned that are not here. From any thread.
    package func fetchPinned() { mailbox.post { $0.state.fetches.lookForPinned() } }

    /// What is to be fetched in the background and has not begun, or only just: at most so many. From any thread.
    package func queuedFetches(limit: Int) throws(Failure) -> [NodeID] {
        let asked = published.withLock { $0.askedFetches }
        let pinned: [NodeID] = try index.read { transaction throws(Failure) in
            try transaction.pinnedPlaceholders(after: NodeID(rawValue: 0), limit: limit)
        }
        return Array((asked + pinned).prefix(limit))
    }

    func startFetches() throws(Failure) {
        let nodes = try state.fetches.next(at: clock.uptime()) { (after, limit) throws(Failure) in
            try index.read { transaction throws(Failure) in try transaction.pinnedPlaceholders(after: after, limit: limit) }
        }
        let asked = state.fetches.waiting(limit: SyncEngine.shownFetchesMax)
        published.withLock { $0.askedFetches = asked }
        for node in nodes {
            _ = hydrator.hydrate(node) { [mailbox] result in
                mailbox.post { $0.fetchEnded(node, result) }
            }
        }
    }

    private func fetchEnded(_ node: NodeID, _ result: Result<Void, Failure>) {
        var end = BackgroundFetches.End.done
        if case .failure(let failure) = result {
            end =
                switch failure.code {
                // Gone, or replaced: the index names it again if it is still to be fetched.
                case .stale: .done
                case .offline: .interrupted
                default: .failed
                }
            logger.debug("a file was not fetched", metadata: ["node": "\(node)", "reason": "\(failure.message)"])
        }
        state.fetches.ended(node, end, at: clock.uptime())
    }
}
