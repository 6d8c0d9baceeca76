package import PromiseCore
import PromiseIndex

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
    /// What may be begun now.
    enum State {
        /// As work becomes due.
        case off
        /// Nothing.
        case holding
        /// Nothing more than this, for which somebody waits.
        case running(SteppedOperation, Pending.Subject, Waiter)
    }

    /// Of so much pending work one operation is looked for that can begin.
    private static let lookedAtMax = 1_000

    static func wanted(
        _ waiter: Waiter, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if case .running = turn.memory.operations.stepping {
            return turn.act(
                .reply(waiter, .failure(Failure(.busy, "another step is still under way"))))
        }
        turn.remember { $0.operations.stepping = .holding }
        guard turn.memory.operations.running.isEmpty else {
            return turn.act(
                .reply(waiter, .failure(Failure(.busy, "work from before is still under way"))))
        }
        for pending in try transaction.allPending(limit: lookedAtMax) {
            guard let operation = try Telling.begin(pending, &turn, transaction) else { continue }
            let stepped = SteppedOperation(
                kind: operation.kind, node: operation.node,
                path: try path(of: operation, transaction), byteCount: operation.byteCount)
            turn.remember { $0.operations.stepping = .running(stepped, operation.subject, waiter) }
            return
        }
        turn.act(.stepped(waiter, nil))
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
    static func told(_ operation: Operation, _ problem: Failure?, _ turn: inout Turn) {
        guard case .running(var stepped, operation.subject, let waiter) = turn.memory.operations.stepping
        else { return }
        turn.remember { $0.operations.stepping = .holding }
        stepped.problem = problem
        turn.act(.stepped(waiter, stepped))
    }

    /// Everything may go by itself again.
    static func end(_ turn: inout Turn) {
        guard case .holding = turn.memory.operations.stepping else { return }
        turn.remember { $0.operations.stepping = .off }
    }
}
