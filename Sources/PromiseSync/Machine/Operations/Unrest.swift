import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// Content that is written to: when it has rested, and what becomes of it when it never does.
enum Unrest {
    /// What goes on being changed is sent after this long all the same. Who wants hours of quiet
    /// before anything is sent means it.
    static func max(_ configuration: SyncEngine.Configuration) -> Duration {
        Swift.max(.seconds(600), configuration.uploadDelay * 4)
    }

    /// A larger file that is open and never quiet would be written to before it was sent.
    private static let openBytesMax: UInt64 = 64 << 20
    /// What was written to while it was sent is tried again after twice the time, and so on.
    private static let doublingsMax = 7

    /// Why content is not sent now.
    struct Wait {
        var delay: Duration
        /// It cannot be had, so that the item counts as failing.
        var problem: Failure?
    }

    /// nil when the content may be sent now.
    static func wait(
        for node: Node, _ pending: Pending, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Wait? {
        if node.content != .whole {
            turn.notices.hydrate.append(node.id)
            let problem = turn.world.fetchProblem(node.id).map {
                Failure(
                    $0.code,
                    "the rest of its content cannot be fetched, and it is sent only whole: \($0.message)"
                )
            }
            return Wait(delay: .seconds(1), problem: problem)
        }
        let holes = try transaction.holes(of: node.id)
        if !holes.ranges.isEmpty {
            return Wait(delay: .seconds(30), problem: Failure(.stale, Tree.incompleteness(holes)))
        }
        let operations = turn.memory.operations
        guard node.isOpenForWriting, !operations.isDraining, !operations.hurried.contains(node.id)
        else { return nil }
        guard let status = try turn.world.content.status(node.id, node.generation)
        else { return nil }
        let quiet = Duration.nanoseconds(turn.now.time.nanoseconds(since: status.modificationTime))
        // No write gave it a time that is still to come.
        let isQuiet = quiet >= Telling.quietPeriod || quiet < .seconds(-1)
        if isQuiet { return nil }
        // A write while it is sent keeps it from arriving.
        if mayGo(node, pending, turn) { return nil }
        return Wait(delay: Telling.quietPeriod - quiet)
    }

    private static func isLong(_ pending: Pending, doublings: Int, _ turn: borrowing Turn) -> Bool {
        let waited = turn.now.time.nanoseconds(since: pending.since)
        return .nanoseconds(waited) >= max(turn.facts.configuration) * (1 << doublings)
    }

    /// An open file that is never quiet.
    private static func mayGo(_ node: Node, _ pending: Pending, _ turn: borrowing Turn) -> Bool {
        let torn = turn.memory.operations.torn[pending.subject] ?? 0
        return node.size <= openBytesMax && isLong(pending, doublings: torn, turn)
    }

    /// It was sent, and has changed again: it may wait for as long once more. What only went out of
    /// the way of others has not been sent.
    static func sent(_ operation: Operation, _ row: inout Pending, _ turn: inout Turn) {
        if operation.source != nil {
            turn.remember { $0.operations.torn[operation.subject] = nil }
        }
        guard case .entry = operation.subject, operation.kind != .compare,
            operation.places.last.map({ !AsideName.isOne($0.name) }) ?? true,
            isLong(row, doublings: 0, turn)
        else { return }
        let since = row.since
        beginAgain(&row, turn)
        // Its content has not been sent, and has waited for as long as before.
        if movedOnly(operation) { row.since = since }
    }

    /// Its content did not rest, and was left out.
    private static func movedOnly(_ operation: Operation) -> Bool {
        guard case .modify(_, let changes, nil, _) = operation.work else { return false }
        return operation.kind == .upload && changes.target == nil
    }

    /// It was written to while it was sent. What never rests is not sent again and again for that.
    static func torn(_ row: inout Pending, _ turn: inout Turn) {
        guard isLong(row, doublings: 0, turn) else {
            row.due = turn.now.time.advanced(by: turn.facts.configuration.uploadDelay)
            return
        }
        let subject = row.subject
        turn.remember { memory in
            // Each only begins to wait for the shortest time again.
            if memory.operations.torn.count >= tornMax { memory.operations.torn = [:] }
            let count = memory.operations.torn[subject] ?? 0
            memory.operations.torn[subject] = min(count + 1, doublingsMax)
        }
        beginAgain(&row, turn)
    }

    private static let tornMax = 1_024

    private static func beginAgain(_ row: inout Pending, _ turn: borrowing Turn) {
        row.since = turn.now.time
        row.due = turn.now.time.advanced(by: turn.facts.configuration.uploadDelay)
    }
}
