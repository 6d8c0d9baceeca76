import PromiseCore
import PromiseIndex

/// Working off the differences between the provider and what was last agreed on, one item at a
/// time.
enum Following {
    private static let itemsPerPart = 256

    /// Changes that have to wait, for claims e.g., do not hold up those behind them.
    static func due(
        after position: Int64, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let part = try transaction.divergences(after: position, limit: itemsPerPart)
        if position == 0 { turn.remember { $0.hasDivergences = false } }
        guard let last = part.last else { return }
        for (_, identifier, _) in part { turn.act(.go(.follow(identifier))) }
        turn.act(.go(.followed(upTo: last.sequence)))
    }

    /// One item. When its difference is gone, or is another one, all are looked at again: what has
    /// become pending work is looked at when that is done.
    static func follow(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if turn.memory.operations.isBusy(identifier) { return }
        let before = try transaction.remote(identifier)
        guard try Tree.follow(identifier, depth: 0, &turn, transaction) else { return }
        if try transaction.remote(identifier) != before { turn.noteDivergence() }
    }

    /// Nothing of a part could be followed: the next part is looked at.
    static func followed(
        upTo position: Int64, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if !turn.memory.hasDivergences { try due(after: position, &turn, transaction) }
    }

    /// Pending work that waited for a claim is due now, while the claim is there.
    static func claimsReleased(_ turn: inout Turn, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        let waiting = turn.memory.operations.waitingForClaims
        turn.remember { memory in
            memory.hasDivergences = true
            memory.operations.waitingForClaims = []
        }
        try turn.makeDue(waiting, transaction)
    }
}
