import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Stores that are asked by place and yet number their items (Nextcloud's `oc:fileid`): what others moved there is known by its
// number. A listing that shows a number that is known at another place does not say that the item left that place, as two
// listings are two moments, and a number may have become another one where something was written over something else. So the
// item is asked for where it was: what is not there any more has moved, with everything that is kept of it here.

extension SyncEngine {
    /// True when a listed row may be an item that is known elsewhere: then that is asked for first, and the row is not taken.
    func isArrival(
        _ listed: Item, in parent: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard listed.identifier.isNumber, knowsByPlace else { return false }
        state.hasNumbers = true
        guard let known = try known(listed.identifier, transaction), known.kind == listed.kind,
            known.parent != parent || known.name != listed.name
        else { return false }
        // A folder is not in itself: another one is where it was known, and that is what is listed.
        if try isInside(parent, listed.identifier, transaction) { return false }
        // What is known at the place has new content; and a move of ours is recognised as such.
        if try transaction.knownItem(in: parent, named: listed.name) != nil { return false }
        if isBusy(Place(parent: parent, name: listed.name)) { return false }
        if try movedItem(listed, in: parent, transaction) != nil { return false }
        var item = listed
        item.parent = parent
        state.arrivals[item.identifier] = item
        state.missing.insert(item.identifier)
        return true
    }

    /// What was found where an item was that a listing showed elsewhere; nil: nothing. True when that says all of it.
    func follow(
        _ arrival: Item, found: Item?, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let identifier = arrival.identifier
        guard let known = try known(identifier, transaction) else {
            // It was removed here meanwhile: what has the number now is new.
            try insertBeside(arrival, transaction)
            return true
        }
        let isThere = found.map { !$0.identifier.isNumber || $0.identifier == identifier } ?? false
        guard !isThere, let parent = arrival.parent, try transaction.knownItem(in: parent, named: arrival.name) == nil else {
            try insertBeside(arrival, transaction)
            return false
        }
        try observe(
            try withAgreedMetadata(arrival, transaction), synced: try transaction.synced(identifier), transaction)
        // Something else has its place now.
        if found != nil, let old = known.parent { rescan(old) }
        return true
    }

    /// It has the number of another item, which is where it was.
    private func insertBeside(_ arrival: Item, _ transaction: borrowing Transaction) throws(Failure) {
        guard let parent = arrival.parent, try transaction.knownItem(in: parent, named: arrival.name) == nil else { return }
        var item = arrival
        if try known(item.identifier, transaction) != nil { item.identifier = freshIdentifier(item.identifier) }
        try observe(item, synced: nil, transaction)
    }

    /// The missing ones that can be asked for now: of one in a folder that is asked for the path is not certain.
    func missingToAsk(_ count: Int, _ transaction: borrowing Transaction) throws(Failure) -> [ItemIdentifier] {
        var result: [ItemIdentifier] = []
        var doubtful: [ItemIdentifier: Bool] = [:]
        // Of a million no more is looked at than is asked for.
        for identifier in state.missing where !state.verifying.contains(identifier) {
            if result.count >= count { break }
            guard state.hasNumbers, let parent = try known(identifier, transaction)?.parent else {
                result.append(identifier)
                continue
            }
            if doubtful[parent] == nil { doubtful[parent] = try isAskedFor(parent, transaction) }
            if doubtful[parent] == false { result.append(identifier) }
        }
        return result
    }

    /// The folder, or one above it.
    private func isAskedFor(_ folder: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        var current = folder
        // No real path is this deep.
        for _ in 0..<4096 where current != rootIdentifier {
            if state.missing.contains(current) || state.verifying.contains(current) { return true }
            guard let next = try known(current, transaction)?.parent else { return false }
            current = next
        }
        return false
    }
}
