import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// Telling the provider of what was done here.
enum Telling {
    /// What pending work amounts to, once planned.
    enum Prepared {
        case start(Operation)
        /// The trees agree already.
        case done
        /// Something else has to happen first.
        case later(Duration, Decision.Obstacle)
    }

    /// A file that stays open for writing is sent when it has been quiet for this long.
    static let quietPeriod = Duration.seconds(10)
    /// Work that waits for other work is looked at again at the latest after this long.
    static let blockedDelay = Duration.milliseconds(250)
    /// Uploads wait for a moment this long without a change here, but no longer than `patience`.
    static let quietMoment = Duration.milliseconds(500)
    static let patience = Duration.seconds(10)

    /// How long until programs have left the mount alone for a moment: an unpacked archive is told
    /// to the provider when it is there, not against it. Zero when they have, and when somebody
    /// waits for the provider.
    static func restUntilQuiet(
        _ memory: Memory, _ facts: Facts, _ lastChange: Duration, at now: Moment
    ) -> Duration {
        if memory.operations.isDraining || !memory.operations.hurried.isEmpty { return .zero }
        return max(
            .zero, lastChange + min(facts.configuration.uploadDelay, quietMoment) - now.uptime)
    }

    /// While programs work here, only what has waited long goes, one by one.
    private static func isBusy(_ turn: borrowing Turn) -> Bool {
        restUntilQuiet(turn.memory, turn.facts, turn.world.lastChange(), at: turn.now) > .zero
    }

    static func due(_ turn: inout Turn, _ transaction: borrowing Transaction) throws(Failure) {
        let isBusy = isBusy(turn)
        guard mayTell(turn) else { return }
        try heedClock(&turn, transaction)
        let now = turn.now.time
        let limit = turn.facts.configuration.operationsMax * 8
        let early = isBusy ? now.advanced(by: .zero - patience) : now
        for pending in try transaction.duePending(at: now, waitingSince: early, limit: limit) {
            turn.act(.go(.tell(pending)))
        }
    }

    /// There is room for one more.
    private static func mayTell(_ turn: borrowing Turn) -> Bool {
        if turn.memory.operations.isHeld { return false }
        return turn.memory.operations.occupiedCount
            < (isBusy(turn) ? 1 : turn.facts.configuration.operationsMax)
    }

    /// Carries pending work out, or says why not now.
    static func tell(
        _ pending: Pending, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard mayTell(turn) else { return }
        _ = try begin(pending, &turn, transaction)
    }

    /// Nil when it has nothing to do, or not now.
    static func begin(
        _ pending: Pending, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Operation? {
        let subject = pending.subject
        if turn.memory.operations.running[subject] != nil { return nil }
        switch try prepare(pending, &turn, transaction) {
        case .done:
            try transaction.deletePending(subject)
        case .later(let delay, let obstacle):
            turn.note(obstacle)
            guard var row = try transaction.pending(subject) else { return nil }
            row.due = turn.now.time.advanced(by: delay)
            try transaction.setPending(row)
        case .start(let operation):
            turn.remember { $0.operations.running[subject] = operation }
            turn.act(.call(.tell(operation)))
            return operation
        }
        return nil
    }

    /// An item whose content cannot be read, e.g., must not hold up the others.
    static func failed(
        _ pending: Pending, _ failure: Failure, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.log(.warning, "an item cannot be sent", reason: failure.message)
        guard var row = try transaction.pending(pending.subject) else { return }
        row.attempts += 1
        row.due = turn.now.time.advanced(
            by: turn.facts.configuration.backoff.delay(after: row.attempts))
        row.error = failure.code
        row.message = failure.message
        try transaction.setPending(row)
        // Perhaps its content comes now.
        guard case .entry(let id) = pending.subject, let entry = try transaction.entry(id),
            let node = try transaction.node(entry.node), node.kind == .file, node.content != .whole
        else { return }
        turn.notices.hydrate.append(node.id)
    }

    private static func prepare(
        _ pending: Pending, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try turn.isPathInMotion(of: pending.subject, transaction) {
            return .later(Telling.blockedDelay, .folderIsMoving)
        }
        if try UnansweredMoves.areToBeLookedFor(for: pending.subject, &turn, transaction) {
            return .later(Telling.blockedDelay, .whereabouts)
        }
        if let folder = try strayFolder(above: pending.subject, turn, transaction) {
            turn.askNow(for: folder)
            return .later(Telling.blockedDelay, .whereabouts)
        }
        // A deletion, e.g., of what is just being moved would find nothing where it was.
        if let item = try item(of: pending.subject, transaction), turn.memory.operations.isBusy(item) {
            return .later(Telling.blockedDelay, .operationOnItem)
        }
        return switch pending.subject {
        case .deletion(let identifier): try prepareDeletion(identifier, &turn, transaction)
        case .entry(let id): try prepareEntry(id, pending, &turn, transaction)
        }
    }

    private static func item(
        of subject: Pending.Subject, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        switch subject {
        case .deletion(let identifier): identifier
        case .entry(let id): try transaction.entry(id)?.identifier
        }
    }

    // MARK: Deletions

    private static func prepareDeletion(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try transaction.entry(for: identifier) != nil { return .done }
        let observation = try turn.observation(of: identifier, nil, transaction)
        let step = turn.decide(identifier, nil, observation, .tell)
        if case .insertLocal(let item) = step, try mayBeRemoved(item, turn, transaction) {
            guard let reference = try turn.reference(to: identifier, transaction) else {
                return try prepareDeletionWithoutPath(identifier, &turn, transaction)
            }
            // Perhaps it was only touched, or is what was sent, and is to go all the same.
            return .start(
                try comparison(with: item, reference, nil, .deletion(identifier), nil, &turn))
        }
        guard case .deleteRemote(let base) = step else {
            // The provider has news of the item: those are followed first.
            _ = try Tree.follow(identifier, depth: 0, &turn, transaction)
            return try isRemoved(identifier, &turn, transaction)
                ? .later(Telling.blockedDelay, .newsFirst) : .done
        }
        if base.kind == .folder, try transaction.hasSyncedChildren(of: identifier) {
            try Reviving.remindOfChildren(of: identifier, &turn, transaction)
            return .later(Telling.blockedDelay * 4, .childrenFirst)
        }
        guard let reference = try turn.reference(to: identifier, transaction) else {
            return try prepareDeletionWithoutPath(identifier, &turn, transaction)
        }
        if try UnansweredRemovals.areToWait(base, &turn, transaction) {
            return .later(Telling.blockedDelay, .whereabouts)
        }
        if turn.world.observer.keepsLastCopies { return .later(Telling.blockedDelay, .lastCopy) }
        let place = base.parent.map { ItemPlace(parent: $0, name: base.name) }
        return .start(
            Operation(
                subject: .deletion(identifier), work: .delete(reference, base: base.version),
                kind: .delete, identifier: identifier, node: nil, edits: 0,
                places: place.map { [$0] } ?? [], byteCount: 0))
    }

    /// The folder it was in is gone at the provider, or it was moved to one that nobody here knows.
    private static func prepareDeletionWithoutPath(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if case .present? = try transaction.remote(identifier) {
            // It will be met when that folder is listed.
            try turn.forgetItem(identifier, transaction)
            return .done
        }
        turn.ask(for: identifier)
        return .later(Telling.blockedDelay * 4, .noPath)
    }

    /// What was removed here and is still agreed to be at the provider.
    private static func isRemoved(
        _ identifier: ItemIdentifier, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard try transaction.entry(for: identifier) == nil else { return false }
        return try transaction.synced(identifier) != nil
    }

    // MARK: Entries

    private static func prepareEntry(
        _ id: EntryID, _ pending: Pending, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        guard let entry = try transaction.entry(id), !entry.isExcluded,
            let node = try transaction.node(entry.node),
            node.kind.isStorable
        else { return .done }
        if let identifier = entry.identifier, try transaction.remote(identifier) != nil {
            guard try Tree.follow(identifier, depth: 0, &turn, transaction) else {
                return .later(Telling.blockedDelay, .newsFirst)
            }
            guard let current = try transaction.entry(id) else { return .done }
            return try prepareKnown(current, pending, &turn, transaction)
        }
        return try prepareKnown(entry, pending, &turn, transaction)
    }

    private static func prepareKnown(
        _ entry: Entry, _ pending: Pending, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        try FirstNames.lookForLeft(by: entry, &turn, transaction)
        let observation = try turn.observation(of: entry.identifier, entry, transaction)
        guard let node = try transaction.node(entry.node) else { return .done }
        switch turn.decide(entry.identifier, entry, observation, .tell) {
        case .keepBoth(let item):
            guard try turn.world.observer.mayFollow(.replaced, of: node.id, transaction) else {
                turn.remember { $0.operations.waitingForClaims.insert(pending.subject) }
                return .later(Telling.blockedDelay, .claim)
            }
            return try prepareConflict(entry, node, item, &turn, transaction)
        case .create:
            return try prepareCreation(entry, node, pending, &turn, transaction)
        case .push(let content, let place, let metadata):
            guard let synced = observation.synced else { return .done }
            return try prepareChange(
                entry, node, synced, content: content, place: place, metadata: metadata, pending,
                &turn, transaction)
        default:
            return .done
        }
    }

    private static func prepareCreation(
        _ entry: Entry, _ node: Node, _ pending: Pending, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        guard let parent = try turn.identifier(of: entry.parent, transaction) else {
            BlockedWork.note(pending.subject, on: entry.parent, &turn)
            return .later(.seconds(5), .folderUnmade)
        }
        // One after the other at each place, so that what the index knows of the last one is not
        // overwritten.
        if turn.memory.operations.isBusy(ItemPlace(parent: parent, name: entry.name)) {
            return .later(Telling.blockedDelay, .operationAtPlace)
        }
        if let removed = try removedItem(
            at: ItemPlace(parent: parent, name: entry.name), &turn, transaction)
        {
            if try Reviving.adopt(removed, by: entry, &turn, transaction) { return .later(.zero, .again) }
            try turn.remind(.deletion(removed.identifier), transaction)
            return .later(Telling.blockedDelay, .placeOfRemoved)
        }
        if try isHeld(ItemPlace(parent: parent, name: entry.name), &turn, transaction) {
            return .later(Telling.blockedDelay, .placeTaken)
        }
        let place = ItemPlace(parent: parent, name: entry.name)
        if try FirstNames.isToBeLookedFor(entry, at: place, &turn, transaction) {
            return .later(Telling.blockedDelay, .whereabouts)
        }
        guard let folder = try turn.reference(to: parent, transaction) else {
            // No path leads to the folder: what has become of it shows when it is looked at itself.
            for entry in try transaction.entries(of: entry.parent) {
                try turn.remind(.entry(entry.id), transaction)
            }
            return .later(.seconds(1), .noPath)
        }
        var source: UploadSource?
        if node.kind == .file {
            if let wait = try Unrest.wait(for: node, pending, &turn, transaction) {
                if let problem = wait.problem { throw problem }
                return .later(wait.delay, .content)
            }
            source = try UploadSource(
                turn.world.content, node: node.id, generation: node.generation,
                isWrittenTo: node.isOpenForWriting)
        }
        let item = NewItem(
            name: entry.name, kind: node.kind, metadata: Metadata(node), target: node.target)
        let sent = try turn.storeSent(
            SentChange(
                entry: entry.id, item: nil, isMove: false, parent: parent, name: entry.name,
                kind: node.kind, edits: node.edits,
                size: source?.size ?? node.size, modificationTime: node.recognizableTime, base: nil,
                target: node.target),
            transaction)
        return .start(
            Operation(
                subject: pending.subject, work: .create(item, in: folder, source), kind: .create,
                identifier: nil, node: node.id,
                // A time that was given to a folder is told again, after what is in it.
                edits: node.kind == .folder ? 0 : node.edits,
                places: [ItemPlace(parent: parent, name: entry.name)],
                byteCount: source?.dataByteCount ?? 0,
                sent: sent))
    }
}
