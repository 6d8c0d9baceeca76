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
        /// What was made at last.
        var node: NodeID?
        var isRemoved = false
        /// That had another name here when it left its place.
        var isElsewhere = false
        /// Whether it is still there was asked, after something had been seen at its old place.
        var isAskedFor = false
    }
    private var places: [ItemPlace: Late] = [:]

    /// No call is under way for longer.
    private static let patience = Duration.seconds(120)
    private static let countMax = 256

    /// Something was made, by the last of the calls for it.
    mutating func made(
        _ node: NodeID?, at place: ItemPlace, before earlier: [SentChange], at now: Duration
    ) {
        places[place]?.isRemoved = false
        places[place]?.node = node
        if earlier.isEmpty { return }
        places = places.filter { now < $0.value.until }
        if places.count >= LateCreations.countMax { places = [:] }
        let known = places[place]?.sent ?? []
        places[place] = Late(
            sent: known + earlier, until: now + LateCreations.patience, node: node)
    }

    mutating func removed(at place: ItemPlace, isElsewhere: Bool) {
        guard var late = places[place] else { return }
        (late.isRemoved, late.isElsewhere, late.isAskedFor) = (true, isElsewhere, false)
        places[place] = late
    }

    mutating func askedForElsewhere(_ place: ItemPlace) { places[place]?.isAskedFor = true }

    mutating func forget(_ place: ItemPlace) { places[place] = nil }

    private func late(at place: ItemPlace, _ now: Duration) -> Late? {
        guard let late = places[place], late.isRemoved, now < late.until else { return nil }
        return late
    }

    // MARK: Deciding

    /// Something was made, or has left its place. Called before what was sent for it is forgotten.
    static func answered(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if operation.kind == .delete || operation.isMove, let place = operation.places.first,
            let late = turn.memory.operations.late.places[place]
        {
            let names = try late.node.map { node throws(Failure) in
                try transaction.entries(of: node)
            }
            let isElsewhere = names?.isEmpty == false
            turn.remember { $0.operations.late.removed(at: place, isElsewhere: isElsewhere) }
        }
        guard operation.kind == .create, let place = operation.places.last else { return }
        let earlier = try transaction.sentChanges(to: place.parent, place.name)
            .filter { $0.sent.item == nil && $0.id != operation.sent }.map(\.sent)
        let (node, now) = (operation.node, turn.now.uptime)
        turn.remember { $0.operations.late.made(node, at: place, before: earlier, at: now) }
    }

    /// A listing shows something of which nothing is known here. True when an earlier call of ours
    /// has made it, for what was removed here since; then it is removed there, if nobody has put
    /// anything into it. True also while that is being found out.
    static func isOne(
        _ item: Item, in folder: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = item.parent else { return false }
        let place = ItemPlace(parent: parent, name: item.name)
        let comparesTimes = turn.facts.keepsTimes && !item.isGuess
        guard let late = turn.memory.operations.late.late(at: place, turn.now.uptime),
            late.sent.contains(where: { $0.isDone(item, comparesTimes: comparesTimes) }),
            !turn.memory.operations.isBusy(place),
            try transaction.entry(in: folder, named: item.name) == nil
        else { return false }
        switch try origin(of: late, at: place, &turn, transaction) {
        case .ours: break
        case .others: return false
        case .unknown: return true
        }
        turn.log(.notice, "a late call has made what was removed here: it is removed again")
        turn.remember { $0.operations.late.forget(place) }
        try transaction.setSynced(SyncedItem(item: item, edits: 0))
        try transaction.setRemote(item.identifier, nil)
        try turn.remind(.deletion(item.identifier), transaction)
        return true
    }

    private enum Origin {
        case ours, others
        /// The item that tells was asked for, and the folder is listed again.
        case unknown
    }

    /// Where items are known by their places, what is seen may be what left the place here, which
    /// others have moved back: it is not when that is still where it went.
    private static func origin(
        of late: Late, at place: ItemPlace, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Origin {
        guard turn.facts.knowsByPlace, late.isElsewhere, let node = late.node else { return .ours }
        let names = try transaction.entries(of: node)
        if !names.isEmpty, names.allSatisfy({ $0.identifier == nil }) { return .ours }
        guard let identifier = names.compactMap(\.identifier).first,
            try transaction.synced(identifier) != nil, try transaction.remote(identifier) == nil
        else {
            turn.remember { $0.operations.late.forget(place) }
            return .others
        }
        if late.isAskedFor, turn.memory.questions.placesSeen.contains(identifier) { return .ours }
        if !late.isAskedFor {
            turn.remember { memory in
                memory.operations.late.askedForElsewhere(place)
                memory.questions.placesSeen.remove(identifier)
            }
            turn.ask(for: identifier)
        }
        turn.listAgain(place.parent, after: .seconds(1))
        return .unknown
    }
}
