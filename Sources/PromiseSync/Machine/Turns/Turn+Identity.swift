import PromiseCore
import PromiseIndex
import PromiseProvider

// Stores that know an item by its place only. Here an item keeps its identifier when it is moved;
// what such a store shows at a place is the item that was last known there, and what is found where
// an operation of ours put an item is that item. So a move changes nothing for what is inside a
// moved folder, and a crash after a move does not make two items of one.
//
// Stores that keep no modes and times: what was agreed on stays, as long as the content does.

extension Turn {
    /// What a listing of `parent`, or the outcome of a creation there, shows; under the identifier
    /// it has here. `asked`: the item itself was asked for.
    mutating func identified(
        _ item: Item, in parent: ItemIdentifier, asked: ItemIdentifier? = nil,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Item {
        var item = item
        if facts.knowsByPlace {
            item.parent = parent
            let known = try transaction.knownItem(in: parent, named: item.name)
            // A listing that does not tell of links shows one as a file. Whether another version is that
            // of a link, too, only the item itself says.
            if item.isGuess, asked == nil, let known, known.kind == .link {
                if known.version != item.version { ask(for: known.identifier) }
                return known
            }
            if let known, known.kind == item.kind {
                item.identifier = known.identifier
            } else if let moved = try movedItem(item, in: parent, asked: asked, transaction) {
                item.identifier = moved
            } else if try isTaken(item.identifier, transaction) {
                item.identifier = freshIdentifier(item.identifier)
            }
        }
        return try withAgreedMetadata(item, transaction)
    }

    /// What the store has at the place of an item that was asked for, by the name that it has there
    /// of two that are one; nil when that is something else.
    mutating func identified(
        _ item: Item, as identifier: ItemIdentifier, foundIn parent: ItemIdentifier?,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        if let parent {
            let found = try identified(item, in: parent, asked: identifier, transaction)
            return found.identifier == identifier ? found : nil
        }
        guard facts.knowsByPlace || item.identifier == identifier else { return nil }
        var item = item
        if facts.knowsByPlace, identifier != facts.rootIdentifier {
            guard let known = try known(identifier, transaction), known.kind == item.kind else {
                return nil
            }
            (item.identifier, item.parent) = (identifier, known.parent)
            if !item.name.isTwin(of: known.name) { item.name = known.name }
        }
        return try withAgreedMetadata(item, transaction)
    }

    /// What an operation left, under the identifier that the item has here.
    mutating func identified(
        _ item: Item, by operation: Operation, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item {
        guard facts.knowsByPlace, let place = operation.places.last else { return item }
        guard let identifier = operation.identifier else {
            return try identifiedAsMade(item, at: place, by: operation, transaction)
        }
        var item = item
        (item.identifier, item.parent) = (identifier, place.parent)
        return item
    }

    /// What was made is not what is known at its place and shown here under another name: that has left
    /// the place, or nothing could have been made there.
    private mutating func identifiedAsMade(
        _ made: Item, at place: ItemPlace, by operation: Operation,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Item {
        guard case .entry(let own) = operation.subject,
            let known = try transaction.knownItem(in: place.parent, named: place.name),
            let shown = try transaction.entry(for: known.identifier), shown.id != own
        else { return try identified(made, in: place.parent, transaction) }
        ask(for: known.identifier)
        var item = made
        item.parent = place.parent
        if try isTaken(item.identifier, transaction) {
            item.identifier = freshIdentifier(item.identifier)
        }
        return try withAgreedMetadata(item, transaction)
    }

    /// Where an item may be that is not where it was: a move of ours whose answer did not come
    /// leads there.
    func destination(
        of identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> (reference: ItemReference, parent: ItemIdentifier)? {
        guard facts.knowsByPlace, let known = try known(identifier, transaction), known.parent != nil,
            let sent = try UnansweredMoves.last(of: known, transaction),
            let folder = try reference(to: sent.parent, transaction)
        else { return nil }
        return (ItemReference(identifier: identifier, path: folder.path + [sent.name]), sent.parent)
    }

    /// Whether an earlier move of ours, of which nobody knows whether it was carried out, led to
    /// another place than `target`. With the next one that place would be forgotten, and what is
    /// there be taken for something new.
    func mayHaveGoneElsewhere(
        _ item: Item, than target: ItemPlace, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard !memory.questions.placesSeen.contains(item.identifier),
            let found = try destination(of: item.identifier, transaction),
            let name = found.reference.path.last
        else { return false }
        let isWhereItWas = found.parent == item.parent && name == item.name
        return !isWhereItWas && (found.parent != target.parent || name != target.name)
    }

    /// Which item was sent to where this one was found. Several may have been, one of them at this
    /// moment, and be alike in size and time: the version tells, or else the one that was asked for.
    func movedItem(
        _ item: Item, in parent: ItemIdentifier, asked: ItemIdentifier? = nil,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        let comparesTimes = facts.keepsTimes && !item.isGuess
        let moved = try transaction.sentChanges(to: parent, item.name).map(\.sent)
            .filter { $0.mayBeMoved(item, comparesTimes: comparesTimes) }
        let exact = moved.filter { $0.base == item.version }
        let candidates = exact.isEmpty ? moved : exact
        return (candidates.last { asked != nil && $0.item == asked } ?? candidates.last)?.item
    }

    private func isTaken(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if try transaction.entry(for: identifier) != nil { return true }
        if try transaction.synced(identifier) != nil { return true }
        if try transaction.remote(identifier) != nil { return true }
        // An application was given what was here before, and not what is here next.
        if try GivenNames.contains(identifier, transaction) { return true }
        // A move of what was removed since may have come to its end, and is looked for under it.
        return try transaction.sentChanges(of: identifier).contains { $0.sent.isMove }
    }

    func withAgreedMetadata(_ item: Item, _ transaction: borrowing Transaction) throws(Failure)
        -> Item
    {
        guard !facts.keepsTimes || item.isGuess else { return item }
        guard let agreed = try transaction.synced(item.identifier)?.item, agreed.kind == item.kind
        else { return item }
        var item = item
        item.isGuess = item.isGuess && item.version != agreed.version
        let time = item.metadata.modificationTime
        item.metadata = agreed.metadata
        // New content is as old as the store says.
        if item.version != agreed.version { item.metadata.modificationTime = time }
        return item
    }

    /// Whether nothing is left of a synced item at the provider: the folder that it was in is gone,
    /// or, at a store of places, another item has its place. No listing can show it any more and no
    /// path leads to it, as to folders that are known in each other: what was seen at different
    /// moments has made a circle of them.
    func isLost(_ item: Item, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard try transaction.remote(item.identifier) == nil, let parent = item.parent else {
            return false
        }
        if facts.knowsByPlace, let folder = try node(for: parent, transaction),
            let other = try transaction.entry(in: folder, named: item.name)?.identifier,
            other != item.identifier,
            let holder = try transaction.synced(other)?.item, holder.parent == parent,
            holder.name == item.name,
            try transaction.remote(other) == nil
        {
            return true
        }
        // A store that gives items new identifiers may show the folder under another one.
        guard facts.knowsByPlace || facts.capabilities.contains(.stableIdentifiers) else {
            return false
        }
        var (current, hasNews) = (parent, false)
        // No real path is this deep.
        for _ in 0..<4096 {
            if current == facts.rootIdentifier { return false }
            // A deletion that is known of is followed first.
            let news = try transaction.remote(current)
            if case .deleted? = news { return false }
            hasNews = hasNews || news != nil
            guard let folder = try known(current, transaction) else { return true }
            guard let next = folder.parent else { return false }
            current = next
        }
        // What others did since may make an end to a circle.
        return !hasNews
    }

    // MARK: Paths that are about to change

    /// A folder above an item of which nobody knows whether our own move of it was carried out:
    /// paths through it lead nowhere, or to something else, if it was.
    func uncertainFolder(
        above identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        guard facts.knowsByPlace, try transaction.hasSent() else { return nil }
        var current = try known(identifier, transaction)?.parent
        // No real path is this deep.
        for _ in 0..<4096 {
            guard let folder = current, folder != facts.rootIdentifier else { return nil }
            let isSeen = memory.questions.placesSeen.contains(folder)
            if !isSeen, try destination(of: folder, transaction) != nil { return folder }
            current = try known(folder, transaction)?.parent
        }
        return nil
    }

    /// The item, and the folders where it is and is to be.
    func pathParents(
        of subject: Pending.Subject, _ transaction: borrowing Transaction
    ) throws(Failure) -> (own: ItemIdentifier?, parents: [ItemIdentifier]) {
        var own: ItemIdentifier?
        var parents: [ItemIdentifier] = []
        switch subject {
        case .deletion(let identifier): own = identifier
        case .entry(let id):
            guard let entry = try transaction.entry(id) else { break }
            own = entry.identifier
            if let parent = try identifier(of: entry.parent, transaction) { parents.append(parent) }
        }
        if let own, let parent = try known(own, transaction)?.parent { parents.append(parent) }
        return (own, parents)
    }

    /// Whether what was asked of an item by its path, when `count` operations had finished, may
    /// have been asked of another one: a folder above it is being moved or was moved since then.
    func mayHaveMoved(
        _ identifier: ItemIdentifier, since count: Int, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard facts.knowsByPlace else { return false }
        let operations = memory.operations
        let moving = Set(operations.running.values.filter { $0.isMove }.compactMap(\.identifier))
        var current = identifier
        for _ in 0..<4096 where current != facts.rootIdentifier {
            if moving.contains(current) || operations.isTouched(current, since: count) {
                return true
            }
            guard let parent = try known(current, transaction)?.parent else { return false }
            current = parent
        }
        return false
    }

    func isInMotion(_ identifier: ItemIdentifier, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool
    {
        guard memory.operations.hasMoves else { return false }
        return try mayHaveMoved(identifier, since: .max, transaction)
    }

    /// An operation names its item by a path, which is wrong once a folder above has been moved:
    /// neither goes on while the other is under way.
    func isPathInMotion(
        of subject: Pending.Subject, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard facts.knowsByPlace, !memory.operations.running.isEmpty else { return false }
        let (own, parents) = try pathParents(of: subject, transaction)
        for operation in memory.operations.running.values {
            if let moving = operation.identifier, operation.isMove {
                for parent in parents where try isInside(parent, moving, transaction) {
                    return true
                }
            }
            guard let own else { continue }
            for place in operation.places where try isInside(place.parent, own, transaction) {
                return true
            }
        }
        return false
    }
}
