package import PromiseCore
import PromiseIndex
import PromiseProvider

/// What one step of pending work was.
package struct SteppedOperation: Sendable {
    package var kind: PendingKind
    package var node: NodeID?
    /// Names from the root, as they were when it began; of a deletion the provider's.
    package var path: [FileName]
    package var byteCount: UInt64
    /// Nil: the provider has it.
    package var problem: Failure?
}

/// Pending work one operation at a time, for tests and for whoever looks for a fault: nothing goes by
/// itself until everything is to go.
enum Stepping {
    struct State {
        /// Nothing goes by itself.
        var isHolding = false
        var running: Running?
    }

    /// The step that is under way, and who waits for it.
    struct Running {
        var operation: SteppedOperation
        var subject: Pending.Subject
        var waiter: Waiter
    }

    /// Of so much pending work one operation is looked for that can begin.
    private static let lookedAtMax = 1_000

    static func wanted(
        _ waiter: Waiter, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.operations.stepping.isHolding = true }
        guard turn.memory.operations.running.isEmpty else {
            return turn.act(
                .reply(waiter, .failure(Failure(.busy, "other work is still under way"))))
        }
        turn.act(.go(.step(waiter, try transaction.allPending(limit: lookedAtMax)[...])))
    }

    /// The first of these that can begin. One that cannot be sent undoes its own event alone, see
    /// `passOver`.
    static func next(
        of waiting: ArraySlice<Pending>, for waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let pending = waiting.first else { return turn.act(.stepped(waiter, nil)) }
        guard let operation = try Telling.begin(pending, &turn, transaction) else {
            return turn.act(.go(.step(waiter, waiting.dropFirst())))
        }
        let stepped = SteppedOperation(
            kind: operation.kind, node: operation.node,
            path: try path(of: operation, transaction), byteCount: operation.byteCount)
        let running = Running(operation: stepped, subject: operation.subject, waiter: waiter)
        turn.remember { $0.operations.stepping.running = running }
    }

    /// The first of these cannot be sent: it counts as failing, and holds up nothing.
    static func passOver(
        _ waiting: ArraySlice<Pending>, _ failure: Failure, for waiter: Waiter, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        if let pending = waiting.first {
            try Telling.failed(pending, failure, &turn, transaction)
        }
        turn.act(.go(.step(waiter, waiting.dropFirst())))
    }

    private static func path(
        of operation: Operation, _ transaction: borrowing Transaction
    ) throws(Failure) -> [FileName] {
        switch operation.subject {
        case .deletion(let identifier): return try transaction.remotePath(of: identifier) ?? []
        case .entry(let id):
            guard let entry = try transaction.entry(id) else { return [] }
            return (try transaction.path(of: entry.parent) ?? []) + [entry.name]
        }
    }

    /// An operation was answered.
    static func told(_ operation: Operation, _ problem: ProviderError?, _ turn: inout Turn) {
        guard var running = turn.memory.operations.stepping.running,
            running.subject == operation.subject
        else { return }
        turn.remember { $0.operations.stepping.running = nil }
        running.operation.problem = problem?.failure
        turn.act(.stepped(running.waiter, running.operation))
    }

    /// Everything may go by itself again, also when a step is still under way.
    static func end(_ turn: inout Turn) {
        if turn.memory.operations.stepping.isHolding {
            turn.remember { $0.operations.stepping.isHolding = false }
        }
    }
}
