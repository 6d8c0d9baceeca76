import PromiseCore
import PromiseIndex
import PromiseProvider

// Stores that are asked by place and yet number their items (Nextcloud's `oc:fileid`): what others
// moved there is known by its number. A listing that shows a number that is known at another place
// does not say that the item left that place, as two listings are two moments, and a number may
// have become another one where something was written over something else. So the item is asked for
// where it was: what is not there any more has moved, with everything that is kept of it here.

extension Listings {
    /// True when a listed row may be an item that is known elsewhere: then that is asked for first,
    /// and the row is not taken.
    static func isArrival(
        _ listed: Item, in parent: ItemIdentifier, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard listed.identifier.isNumber, turn.facts.knowsByPlace else { return false }
        if !turn.memory.questions.hasNumbers { turn.remember { $0.questions.hasNumbers = true } }
        guard let known = try turn.known(listed.identifier, transaction), known.kind == listed.kind,
            known.parent != parent || known.name != listed.name
        else { return false }
        // A folder is not in itself: another one is where it was known, and that is what is listed.
        if try turn.isInside(parent, listed.identifier, transaction) { return false }
        // What is known at the place has new content; and a move of ours is recognised as such.
        if try transaction.knownItem(in: parent, named: listed.name) != nil { return false }
        if turn.memory.operations.isBusy(ItemPlace(parent: parent, name: listed.name)) {
            return false
        }
        if try turn.movedItem(listed, in: parent, transaction) != nil { return false }
        var item = listed
        item.parent = parent
        turn.remember { [item] memory in
            memory.questions.arrivals[item.identifier] = item
            memory.questions.missing.insert(item.identifier)
        }
        return true
    }

    /// What was found where an item was that a listing showed elsewhere; nil: nothing. True when
    /// that says all of it.
    static func followArrival(
        _ arrival: Item, found: Item?, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let identifier = arrival.identifier
        guard let known = try turn.known(identifier, transaction) else {
            // It was removed here meanwhile: what has the number now is new.
            try insertBeside(arrival, &turn, transaction)
            return true
        }
        let isThere = found.map { !$0.identifier.isNumber || $0.identifier == identifier } ?? false
        guard !isThere, let parent = arrival.parent,
            try transaction.knownItem(in: parent, named: arrival.name) == nil
        else {
            try insertBeside(arrival, &turn, transaction)
            return false
        }
        let item = try turn.withAgreedMetadata(arrival, transaction)
        try turn.observe(item, synced: try transaction.synced(identifier), transaction)
        // Something else has its place now.
        if found != nil, let old = known.parent { turn.listAgain(old) }
        return true
    }

    /// It has the number of another item, which is where it was.
    private static func insertBeside(
        _ arrival: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let parent = arrival.parent,
            try transaction.knownItem(in: parent, named: arrival.name) == nil
        else { return }
        var item = arrival
        if try turn.known(item.identifier, transaction) != nil {
            item.identifier = turn.freshIdentifier(item.identifier)
        }
        try turn.observe(item, synced: nil, transaction)
    }
}
