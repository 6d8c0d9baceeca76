import PromiseCore
import PromiseIndex
import PromiseProvider

/// Questions about single items: those that listings no longer show are asked for before anything
/// is believed deleted.
enum Asking {
    /// Questions that are under way at once, at most.
    static let countMax = 64

    /// Looks at one item again, e.g. because a fetch found another version.
    static func doubted(
        _ node: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = try turn.identifier(of: node, transaction) else { return }
        turn.ask(for: identifier)
        if !turn.facts.knowsByPlace {
            turn.remember { $0.questions.doubted.insert(identifier) }
        }
    }

    /// A fetch found nothing under the node's item. Others may have put another item in its place, so the
    /// folder is listed first: alone, the answer that it is gone would take the name away for a while.
    static func missed(
        _ node: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = try turn.identifier(of: node, transaction) else { return }
        if turn.facts.knowsByPlace { return turn.ask(for: identifier) }
        if try !isListedFirst(identifier, &turn, transaction) { turn.ask(for: identifier) }
    }

    /// The listing finds that it is missing, and it is asked for then. False when nobody knows where
    /// it is, and in a folder whose first listing broke off: that is listed when it is read.
    private static func isListedFirst(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let parent = try turn.known(identifier, transaction)?.parent,
            try turn.knownFolder(parent, transaction) != nil
        else { return false }
        turn.listAgain(parent, after: .zero)
        return true
    }

    /// Items that listings no longer show may have moved: the provider is asked before anything is
    /// believed deleted.
    static func due(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        let room = countMax - turn.memory.questions.asked.count
        guard room > 0 else { return }
        for identifier in try missing(room, turn, transaction) {
            turn.remember { $0.questions.missing.remove(identifier) }
            try ask(for: identifier, &turn, transaction)
        }
    }

    /// The missing ones that can be asked for now: of one in a folder that is asked for the path is
    /// not certain.
    private static func missing(
        _ count: Int, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemIdentifier] {
        let questions = turn.memory.questions
        var result: [ItemIdentifier] = []
        var doubtful: [ItemIdentifier: Bool] = [:]
        // Of a million no more is looked at than is asked for.
        for identifier in questions.missing where questions.asked[identifier] == nil {
            if result.count >= count { break }
            guard questions.hasNumbers, let parent = try turn.known(identifier, transaction)?.parent
            else {
                result.append(identifier)
                continue
            }
            if doubtful[parent] == nil {
                doubtful[parent] = try isAskedFor(parent, turn, transaction)
            }
            if doubtful[parent] == false { result.append(identifier) }
        }
        return result
    }

    /// The folder, or one above it.
    private static func isAskedFor(
        _ folder: ItemIdentifier, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let questions = turn.memory.questions
        var current = folder
        // No real path is this deep.
        for _ in 0..<4096 where current != turn.facts.rootIdentifier {
            if questions.missing.contains(current) || questions.asked[current] != nil
                || questions.gone[current] != nil
            {
                return true
            }
            guard let next = try turn.known(current, transaction)?.parent else { return false }
            current = next
        }
        return false
    }

    private static func ask(
        for identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let count = turn.memory.operations.count
        switch try question(about: identifier, &turn, transaction) {
        case nil:
            // At a store of places, where it may only be put off, nothing is doubted.
            if turn.memory.questions.doubted.contains(identifier) {
                turn.remember { $0.questions.doubted.remove(identifier) }
            }
        case .answered:
            let problem = ProviderError(.notFound, "its folder is gone")
            turn.act(.go(.found(identifier, .failure(problem), operationCount: count)))
        case .ask(let places):
            note(identifier, &turn)
            turn.act(.call(.find(identifier, at: places, operationCount: count)))
        }
    }

    /// It is being asked for, or looked into.
    static func note(_ identifier: ItemIdentifier, _ turn: inout Turn) {
        let asked = QuestionMemory.Asked(
            time: turn.now.uptime, operationCount: turn.memory.operations.count)
        turn.remember { $0.questions.asked[identifier] = asked }
    }

    private enum Question {
        /// In this order.
        case ask([Whereabouts])
        /// It is nowhere.
        case answered
    }

    /// Nil: nothing has to be asked, or not now.
    private static func question(
        about identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Question? {
        // Its path is about to change: it is asked for when that is done.
        if try turn.mayHaveMoved(identifier, since: .max, transaction) {
            turn.ask(for: identifier)
            return nil
        }
        if let folder = try turn.uncertainFolder(above: identifier, transaction) {
            turn.ask(for: identifier)
            turn.askNow(for: folder)
            return nil
        }
        var places: [Whereabouts] = []
        if let reference = try turn.reference(to: identifier, transaction) {
            places.append(Whereabouts(reference: reference, parent: nil))
        }
        if let destination = try turn.destination(of: identifier, transaction) {
            places.append(Whereabouts(reference: destination.reference, parent: destination.parent))
        }
        if !places.isEmpty { return .ask(places) }
        // No path leads to where it was. What is shown here goes or stays with its folder.
        if turn.memory.questions.arrivals[identifier] != nil { return .answered }
        guard try transaction.entry(for: identifier) == nil,
            try transaction.synced(identifier) != nil
        else {
            return nil
        }
        if turn.facts.knowsByPlace { return .answered }
        return .ask([
            Whereabouts(reference: ItemReference(identifier: identifier, path: []), parent: nil)
        ])
    }

    // MARK: Answers

    static func found(
        _ identifier: ItemIdentifier, _ result: Result<FoundItem, ProviderError>, since count: Int,
        _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let askedAt = turn.memory.questions.asked[identifier]?.time
        turn.remember { $0.questions.asked[identifier] = nil }
        let operations = turn.memory.operations
        // An answer from before our own operation says nothing; the item is asked for again
        // afterwards.
        let isDoubtful = try turn.mayHaveMoved(identifier, since: count, transaction)
        if isDoubtful || operations.isBusy(identifier)
            || operations.isTouched(identifier, since: count)
        {
            return turn.ask(for: identifier)
        }
        let isDoubted = turn.memory.questions.doubted.contains(identifier)
        if isDoubted { turn.remember { $0.questions.doubted.remove(identifier) } }
        if let arrival = turn.memory.questions.arrivals[identifier] {
            turn.remember { $0.questions.arrivals[identifier] = nil }
            if try followArrival(arrival, result, &turn, transaction) {
                return MovedFolders.isUndecided(identifier, &turn)
            }
        }
        switch result {
        case .success(let found):
            try observe(found, identifier, &turn, transaction)
            if found.parent == nil {
                MovedFolders.isThere(identifier, &turn)
            } else {
                MovedFolders.isUndecided(identifier, &turn)
            }
        case .failure(let problem)
        where problem.code == .notFound && identifier != turn.facts.rootIdentifier:
            if isDoubted, try isListedFirst(identifier, &turn, transaction) { return }
            if let askedAt, !Connecting.isOfUse(since: askedAt, turn) {
                turn.remember { $0.questions.gone[identifier] = count }
                return Connecting.vouch(&turn)
            }
            guard try MovedFolders.isToBeBelieved(identifier, &turn, transaction)
            else { return }
            MovedFolders.isUndecided(identifier, &turn)
            try transaction.setRemote(identifier, .deleted)
            turn.noteDivergence()
        case .failure(let problem):
            MovedFolders.isUndecided(identifier, &turn)
            turn.judge(problem)
            // Nothing else asks for it before its folder is looked at again.
            if let parent = try turn.known(identifier, transaction)?.parent {
                turn.listAgain(parent, after: .seconds(5))
            }
        }
    }

    /// The storage that said that these are gone is there: so they are.
    static func believeGone(_ turn: inout Turn) {
        let gone = turn.memory.questions.gone
        if gone.isEmpty { return }
        turn.remember { $0.questions.gone = [:] }
        let problem = ProviderError(.notFound, "it is gone")
        // In an order that does not change from process to process.
        for (identifier, count) in gone.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            turn.act(.go(.found(identifier, .failure(problem), operationCount: count)))
        }
    }

    private static func observe(
        _ found: FoundItem, _ identifier: ItemIdentifier, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        // Nobody asks where an item of another store was seen.
        if found.parent == nil, turn.facts.knowsByPlace {
            turn.remember { $0.questions.noteSeen(identifier) }
        }
        guard
            let item = try turn.identified(
                found.item, as: identifier, foundIn: found.parent, transaction)
        else {
            try transaction.setRemote(identifier, .deleted)
            return turn.noteDivergence()
        }
        guard try TwinsOfOthers.giveWay(to: item, &turn, transaction) else {
            return turn.ask(for: identifier)
        }
        try turn.observe(item, synced: try transaction.synced(identifier), transaction)
        try forgetIfUnreachable(identifier, &turn, transaction)
    }

    /// What was removed here and is still in a folder that no path leads to is met when that is
    /// listed.
    private static func forgetIfUnreachable(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard try transaction.entry(for: identifier) == nil,
            try transaction.synced(identifier) != nil,
            try turn.reference(to: identifier, transaction) == nil
        else { return }
        try turn.forgetItem(identifier, transaction)
        try transaction.deletePending(.deletion(identifier))
    }

    /// False when it is as if nothing had arrived.
    private static func followArrival(
        _ arrival: Item, _ result: Result<FoundItem, ProviderError>, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        var found: Item?
        switch result {
        case .success(let answer): found = answer.item
        case .failure(let problem) where problem.code == .notFound: break
        case .failure:
            // The next listing shows it again.
            if let parent = arrival.parent { turn.listAgain(parent, after: .seconds(5)) }
            return false
        }
        return try Listings.followArrival(arrival, found: found, &turn, transaction)
    }
}

// A daemon that runs for months does not keep all that it ever asked for.

extension QuestionMemory {
    /// So many are kept without a look at which of them are still of use.
    static let countMax = 256
    private static let seenMax = 4_096

    /// It was found where it was. What is not known of the others any more is asked again.
    mutating func noteSeen(_ identifier: ItemIdentifier) {
        if placesSeen.count >= QuestionMemory.seenMax { placesSeen = [] }
        placesSeen.insert(identifier)
    }
}

extension Dictionary where Value == Duration {
    /// Of many, those from before that time.
    mutating func forget(before time: Duration) {
        if count >= QuestionMemory.countMax { self = filter { $0.value >= time } }
    }
}
