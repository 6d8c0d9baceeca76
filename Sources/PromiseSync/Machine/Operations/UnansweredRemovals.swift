import PromiseCore
import PromiseIndex
import PromiseProvider

/// A removal that got no answer, at a store of places, of a content that another item is known to have, too, as
/// the removed one was moved over it, e.g. When it was carried out, others may have moved that other item to
/// where the removed one was: the same bytes are there again, and the same removal once more would take the
/// last of them. So the other item is asked for first. When others have taken that item away meanwhile, what is
/// where the removed one was may be it, and is left alone.
enum UnansweredRemovals {
    /// For how long a removal waits for what cannot be found out.
    private static let patience = Duration.seconds(600)

    /// A removal has ended, with a problem or without one.
    static func ended(
        _ operation: Operation, _ problem: ProviderError?, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard operation.kind == .delete, turn.facts.knowsByPlace, let identifier = operation.identifier else { return }
        let isDoubted = turn.memory.questions.removalsDoubted.contains(identifier)
        let now = turn.now.uptime
        turn.remember { memory in
            memory.questions.removalsDoubted.remove(identifier)
            memory.questions.removalsUnanswered[identifier] = nil
        }
        guard let problem, !problem.saysThatNothingHappened else { return }
        if isDoubted { return try leaveAlone(identifier, &turn, transaction) }
        turn.remember { memory in
            guard memory.questions.removalsUnanswered.count < QuestionMemory.countMax else { return }
            memory.questions.removalsUnanswered[identifier] = UnansweredRemoval(since: now)
        }
    }

    /// Whether another item is to be asked for before this one is removed once more.
    static func areToWait(
        _ removed: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let since = turn.memory.questions.removalsUnanswered[removed.identifier]?.since else { return false }
        if turn.now.uptime - since < patience {
            if try isBeingSent(removed, transaction) { return true }
            var isAsking = false
            for other in try ContentTwins.alike(removed, transaction)
            where isToBeAskedFor(other, removed.identifier, &turn) {
                isAsking = true
            }
            if isAsking { return true }
        }
        turn.remember { $0.questions.removalsUnanswered[removed.identifier] = nil }
        return false
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

    /// False once it was found where it is known to be.
    private static func isToBeAskedFor(
        _ other: ItemIdentifier, _ removed: ItemIdentifier, _ turn: inout Turn
    ) -> Bool {
        if turn.memory.questions.removalsUnanswered[removed]?.asked.contains(other) ?? true {
            if turn.memory.questions.placesSeen.contains(other) { return false }
        } else {
            turn.remember { memory in
                memory.questions.placesSeen.remove(other)
                memory.questions.removalsUnanswered[removed]?.asked.insert(other)
            }
        }
        turn.askNow(for: other)
        return true
    }

    /// Others have taken away, or replaced, what an item had: the same content where one was removed without an
    /// answer, or is being removed, may be the last of it.
    static func gone(
        _ step: Step, _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard step.endsContent, turn.facts.knowsByPlace, let identifier = entry.identifier else { return }
        let running = turn.memory.operations.running.values.filter { $0.kind == .delete }.compactMap(\.identifier)
        let unanswered = turn.memory.questions.removalsUnanswered.keys
        for removed in Set(unanswered).union(running).sorted(by: { $0.rawValue < $1.rawValue }) {
            guard removed != identifier, let item = try turn.known(removed, transaction),
                try !ContentTwins.alike(item, among: identifier, transaction).isEmpty
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
    /// What may have the same content, and was asked for since.
    var asked: Set<ItemIdentifier> = []
}

extension Step {
    /// What is here of a file goes.
    var endsContent: Bool {
        switch self {
        case .removeLocal, .replaceContent: true
        default: false
        }
    }
}
