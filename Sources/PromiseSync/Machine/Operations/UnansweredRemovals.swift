import PromiseCore
import PromiseIndex
import PromiseProvider

/// A removal that got no answer, at a store of places, of a content that another item is known to have, too, as
/// the removed one was moved over it, e.g. When it was carried out, others may have moved that other item to
/// where the removed one was: the same bytes are there again, and the same removal once more would take the
/// last of them. So the other item is asked for first. When others have taken that item away meanwhile, what is
/// where the removed one was may be it, and is left alone.
enum UnansweredRemovals {
    /// How often a removal is put off for what cannot be found out: for ten minutes in which the store was there.
    private static let waitsMax = 2_400
    /// To look for others goes through all that is known: not for each of thousands of removals that a store
    /// in trouble does not answer.
    private static let (countMax, interval) = (16, Duration.seconds(60))

    /// A removal has ended, with a problem or without one.
    static func ended(
        _ operation: Operation, _ problem: ProviderError?, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard operation.kind == .delete, turn.facts.knowsByPlace, let identifier = operation.identifier else { return }
        let isDoubted = turn.memory.questions.removalsDoubted.contains(identifier)
        let now = turn.now.uptime
        // What another version is there of came after the one that may have been removed.
        let isReplaced = problem?.code == .conflict
        turn.remember { memory in
            memory.questions.removalsDoubted.remove(identifier)
            if !isReplaced { memory.questions.removalsUnanswered[identifier] = nil }
        }
        guard let problem, !problem.saysThatNothingHappened else { return }
        // What is locked, or too busy, says so before it does anything.
        if case .retryAfter = problem.code { return }
        if isDoubted { return try leaveAlone(identifier, &turn, transaction) }
        try forgetOld(turn.now.uptime, &turn, transaction)
        turn.remember { memory in
            guard memory.questions.removalsUnanswered.count < countMax else { return }
            memory.questions.removalsUnanswered[identifier] = UnansweredRemoval(since: now)
        }
    }

    private static func forgetOld(
        _ now: Duration, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for (removed, unanswered) in turn.memory.questions.removalsUnanswered where now - unanswered.since > interval {
            if !unanswered.isAnswered, try transaction.pending(.deletion(removed)) != nil { continue }
            turn.remember { $0.questions.removalsUnanswered[removed] = nil }
        }
    }

    /// Whether another version that is there now may be what others have put there since, whatever it holds: its
    /// bytes may be those that were removed. Not while what was sent there is not answered.
    static func mayHaveMadeWay(
        for item: Item, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard turn.memory.questions.removalsUnanswered[item.identifier] != nil else { return false }
        return try turn.sentCandidates(of: item, transaction).isEmpty
    }

    /// Whether another item is to be asked for before this one is removed once more.
    static func areToWait(
        _ removed: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let unanswered = turn.memory.questions.removalsUnanswered[removed.identifier], !unanswered.isAnswered
        else { return false }
        var isWaiting = false
        if unanswered.waits < waitsMax {
            isWaiting = try isBeingSent(removed, transaction)
            if !isWaiting { isWaiting = try areToBeAskedFor(unanswered, removed, &turn, transaction) }
        }
        turn.remember { memory in
            memory.questions.removalsUnanswered[removed.identifier]?.waits += 1
            memory.questions.removalsUnanswered[removed.identifier]?.isAnswered = !isWaiting
        }
        return isWaiting
    }

    /// Whether others that may have the same bytes are still to be found where they are known to be.
    private static func areToBeAskedFor(
        _ unanswered: UnansweredRemoval, _ removed: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let others = unanswered.others else {
            var others: [ItemIdentifier] = []
            for other in try ContentTwins.alike(removed, transaction) {
                // One that is being removed, too, saves nothing.
                if try transaction.entry(for: other) != nil { others.append(other) }
            }
            turn.remember { [others] memory in
                for other in others { memory.questions.placesSeen.remove(other) }
                memory.questions.removalsUnanswered[removed.identifier]?.others = others
            }
            return !others.isEmpty
        }
        var areMissed = false
        for other in others where !turn.memory.questions.placesSeen.contains(other) {
            // Known of no more, or with another content.
            if try !ContentTwins.areAlike(removed, other, transaction) { continue }
            areMissed = true
            // Asked for now it would be asked for again and again.
            if !turn.memory.operations.isBusy(other) { turn.askNow(for: other) }
        }
        return areMissed
    }

    /// Whether it has come to another item, as far as its answer will tell.
    private static func isBeingSent(
        _ removed: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard removed.kind == .file, removed.size > 0 else { return false }
        let known = try transaction.fingerprint(of: removed.identifier)
        let digest = known.flatMap { $0.version == removed.version ? $0.digest : nil }
        return try ContentTwins.sent(size: removed.size, transaction).contains { _, sent in
            let isSame = sent.digest.flatMap { one in digest.map { one == $0 } }
            return sent.item != removed.identifier
                && (isSame ?? (sent.modificationTime == removed.metadata.modificationTime))
        }
    }

    /// Others have taken away, or replaced, what an item had: the same content where one was removed without an
    /// answer, or is being removed, may be the last of it.
    static func gone(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard turn.facts.knowsByPlace, let identifier = entry.identifier else { return }
        let running = turn.memory.operations.running.values.filter { $0.kind == .delete }.compactMap(\.identifier)
        let unanswered = turn.memory.questions.removalsUnanswered.keys
        for removed in Set(unanswered).union(running).sorted(by: { $0.rawValue < $1.rawValue }) {
            guard removed != identifier, let item = try turn.known(removed, transaction),
                try transaction.pending(.deletion(removed)) != nil,
                try ContentTwins.areAlike(item, identifier, transaction)
            else { continue }
            if running.contains(removed) {
                turn.remember { $0.questions.removalsDoubted.insert(removed) }
            } else {
                try leaveAlone(removed, &turn, transaction)
            }
        }
    }

    /// What is there may have been moved there since.
    private static func leaveAlone(
        _ removed: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.questions.removalsUnanswered[removed] = nil }
        guard try transaction.entry(for: removed) == nil, let item = try turn.known(removed, transaction)
        else { return }
        turn.explain("what is at \(item.name) now may have been moved there since")
        try turn.forgetItem(removed, transaction)
        try transaction.deletePending(.deletion(removed))
        if let parent = item.parent { turn.listAgain(parent, after: .zero) }
    }
}

struct UnansweredRemoval {
    /// Uptime at which it was known that no answer comes.
    var since: Duration
    /// How often it was put off since.
    var waits = 0
    /// What may have the same content; nil: nobody has looked so far.
    var others: [ItemIdentifier]?
    /// They are where they were: it is told once more.
    var isAnswered = false
}

/// What others have taken away, or replaced, may be elsewhere now.
enum GoneContent {
    static func note(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try SentTwice.gone(entry, turn, transaction)
        try UnansweredRemovals.gone(entry, &turn, transaction)
    }
}
