import PromiseCore
import PromiseIndex
import PromiseProvider

// A move that got no answer, at a store of places. When it was carried out, others may have put
// something else where the item was, and two folders look alike: what is told by the old path, as
// the same move once more or a removal, would be told of theirs. So the folder that the move led to
// is listed first, where the item is recognised. What is not is taken to be where it was.

enum UnansweredMoves {
    /// Whether the item of what is to be told, or a folder of its path, may be where a move led to;
    /// that is looked at then. Throws why it cannot be, so that the item counts as failing.
    static func areToBeLookedFor(
        for subject: Pending.Subject, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard turn.facts.knowsByPlace, try transaction.hasSent() else { return false }
        let (own, parents) = try turn.pathParents(of: subject, transaction)
        for start in (own.map { [$0] } ?? []) + parents {
            var current = start
            // No real path is this deep.
            for _ in 0..<4096 where current != turn.facts.rootIdentifier {
                if try isToBeLookedFor(current, &turn, transaction) { return true }
                guard let next = try turn.known(current, transaction)?.parent else { break }
                current = next
            }
        }
        return false
    }

    /// What was sent after the move, to where the item was, does not say that it is there.
    static func last(
        of item: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> SentChange? {
        let changes = try transaction.sentChanges(of: item.identifier).map(\.sent)
        return changes.last { $0.isMove && $0.leadsElsewhere(than: item) } ?? changes.last
    }

    private static func isToBeLookedFor(
        _ item: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard !turn.memory.questions.movesLookedFor.contains(item),
            !turn.memory.operations.isBusy(item), let known = try turn.known(item, transaction),
            let sent = try transaction.sentChanges(of: item).last(where: { $0.sent.isMove })?.sent,
            sent.leadsElsewhere(than: known),
            let folder = try turn.knownFolder(sent.parent, transaction)
        else { return false }
        if let trouble = turn.memory.listings.troubles.hopeless(folder) {
            throw Failure(
                trouble.code,
                "it may have been moved to a folder that cannot be looked at: \(trouble.message)")
        }
        let now = turn.now.uptime
        switch turn.memory.questions.looks[sent.parent] {
        case .done(let time, _) where now - time < FirstNames.lookPatience:
            turn.remember { $0.questions.movesLookedFor.insert(item) }
            return false
        case .wanted(let time) where turn.memory.awaitsLook(at: sent.parent, wantedAt: time, now):
            return true
        case .done, .wanted, nil:
            turn.remember { $0.wantLook(at: sent.parent, now) }
            turn.listAgain(sent.parent, after: .zero)
            return true
        }
    }
}

extension SentChange {
    fileprivate func leadsElsewhere(than item: Item) -> Bool {
        parent != item.parent || name != item.name
    }
}
