import PromiseCore
import PromiseIndex

/// Work that a program waits for, as by an fsync that means the provider: it goes before its time.
enum Hurrying {
    /// `subjects` are due now, and so is what has to be sent before them. The content of `nodes` is
    /// sent although they are open and were written to just now; those of before are forgotten.
    static func wanted(
        _ subjects: [Pending.Subject], _ nodes: Set<NodeID>, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.operations.hurried = nodes }
        for subject in subjects {
            try makeDue(subject, turn, transaction)
            guard case .entry(let id) = subject, let entry = try transaction.entry(id) else {
                continue
            }
            var folder = entry.parent
            while folder != .root, let above = try transaction.entries(of: folder).first {
                try makeDue(.entry(above.id), turn, transaction)
                folder = above.parent
            }
        }
    }

    private static func makeDue(
        _ subject: Pending.Subject, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard var row = try transaction.pending(subject), row.due > turn.now.time else { return }
        row.due = turn.now.time
        try transaction.setPending(row)
    }
}
