import Logging
import PromiseCore
import PromiseIndex

/// Fetching what no program waits for.
enum Fetching {
    static func due(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        if turn.memory.operations.pausedSince != nil { return }
        var fetches = turn.memory.fetches
        let nodes = try fetches.next(at: turn.now.uptime) { (after, limit) throws(Failure) in
            try transaction.pinnedPlaceholders(after: after, limit: limit)
        }
        turn.remember { [fetches] in $0.fetches = fetches }
        for node in nodes { turn.act(.fetch(node)) }
    }

    /// What is fetched for its pin alone is fetched no further.
    static func unpinned(_ node: NodeID, dropsContent: Bool, _ turn: inout Turn) {
        var fetches = turn.memory.fetches
        guard fetches.unpin(node) else { return }
        turn.remember { [fetches] in $0.fetches = fetches }
        turn.act(.endFetch(node))
        if dropsContent { turn.act(.evict(node)) }
    }

    static func ended(_ node: NodeID, _ result: Result<Void, Failure>, _ turn: inout Turn) {
        var end = BackgroundFetches.End.done
        if case .failure(let failure) = result {
            end =
                switch failure.code {
                // Gone, or replaced: the index names it again if it is still to be fetched.
                case .stale: .done
                case .offline, .interrupted: .interrupted
                default: .failed
                }
            turn.log(.debug, "a file was not fetched", reason: failure.message)
        }
        let now = turn.now.uptime
        turn.remember { [end] in $0.fetches.ended(node, end, at: now) }
    }
}
