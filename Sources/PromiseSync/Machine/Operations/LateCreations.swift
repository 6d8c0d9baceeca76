import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

// A call that makes something may come to the store when nobody waits for it any more, as when its
// daemon was killed. Sent again meanwhile, answered, and removed here, what it makes then is
// nobody's: taken for something new it would be back, here and there.

/// Calls for what was made by a later one, and has left its place since, as was done here. They
/// may be lost: what is not known to be ours stays.
struct LateCreations {
    private struct Late {
        var sent: [SentChange]
        var until: Duration
        var isRemoved = false
    }
    private var places: [ItemPlace: Late] = [:]

    /// No call is under way for longer.
    private static let patience = Duration.seconds(120)
    private static let countMax = 256

    /// Something was made, by the last of the calls for it.
    mutating func made(at place: ItemPlace, before earlier: [SentChange], at now: Duration) {
        places[place]?.isRemoved = false
        if earlier.isEmpty { return }
        places = places.filter { now < $0.value.until }
        if places.count >= LateCreations.countMax { places = [:] }
        let known = places[place]?.sent ?? []
        places[place] = Late(sent: known + earlier, until: now + LateCreations.patience)
    }

    mutating func removed(at place: ItemPlace) { places[place]?.isRemoved = true }

    mutating func forget(_ place: ItemPlace) { places[place] = nil }

    func sent(to place: ItemPlace, at now: Duration) -> [SentChange] {
        guard let late = places[place], late.isRemoved, now < late.until else { return [] }
        return late.sent
    }

    // MARK: Deciding

    /// Something was made, or has left its place. Before what was sent for it is forgotten.
    static func answered(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if operation.kind == .delete || operation.isMove, let place = operation.places.first {
            turn.remember { $0.operations.late.removed(at: place) }
        }
        guard operation.kind == .create, let place = operation.places.last else { return }
        let earlier = try transaction.sentChanges(to: place.parent, place.name)
            .filter { $0.sent.item == nil && $0.id != operation.sent }.map(\.sent)
        let now = turn.now.uptime
        turn.remember { $0.operations.late.made(at: place, before: earlier, at: now) }
    }

    /// A listing shows something of which nothing is known here. True when an earlier call of ours
    /// has made it, for what was removed here since; then it is removed there, if nobody has put
    /// anything into it.
    static func isOne(
        _ item: Item, in folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        let place = ItemPlace(parent: parent, name: item.name)
        let comparesTimes = turn.facts.keepsTimes && !item.isGuess
        guard
            turn.memory.operations.late.sent(to: place, at: turn.now.uptime)
                .contains(where: { $0.isDone(item, comparesTimes: comparesTimes) }),
            !turn.memory.operations.isBusy(place),
            try transaction.entry(in: folder, named: item.name) == nil
        else { return false }
        turn.log(.notice, "a late call has made what was removed here: it is removed again")
        turn.remember { $0.operations.late.forget(place) }
        try transaction.setSynced(SyncedItem(item: item, edits: 0))
        try transaction.setRemote(item.identifier, nil)
        try turn.remind(.deletion(item.identifier), transaction)
        return true
    }
}
