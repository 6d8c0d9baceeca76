import Logging
package import PromiseCore
import PromiseIndex
import PromiseSystem

// Fetching what no program waits for.

extension SyncEngine {
    /// Content of these files comes here, in their order, a few at a time. From any thread.
    package func fetchInBackground(_ nodes: [NodeID]) { mailbox.post { $0.state.fetches.ask(for: nodes) } }

    /// Files may have been pinned that are not here. From any thread.
    package func fetchPinned() { mailbox.post { $0.state.fetches.lookForPinned() } }

    func startFetches() throws(Failure) {
        let nodes = try state.fetches.next(at: clock.uptime()) { (after, limit) throws(Failure) in
            try index.read { transaction throws(Failure) in try transaction.pinnedPlaceholders(after: after, limit: limit) }
        }
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
