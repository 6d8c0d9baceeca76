import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// Telling the provider of what was done here.

extension SyncEngine {
    /// What pending work amounts to, once planned.
    private enum Prepared {
        case start(Operation)
        /// The trees agree already.
        case done
        /// Something else has to happen first.
        case later(Duration)
    }

    /// A file that stays open for writing is sent when it has been quiet for this long.
    static let quietPeriod = Duration.seconds(10)
    /// Work that waits for other work is looked at again at the latest after this long.
    private static let blockedDelay = Duration.milliseconds(250)

    func startOperations() throws(Failure) {
        let isBusy = restUntilQuiet > .zero
        // While programs work here, only what has waited long goes, one by one.
        let operationsMax = isBusy ? 1 : configuration.operationsMax
        guard occupiedCount < operationsMax else { return }
        let now = clock.now()
        let due = try index.read { transaction throws(Failure) in
            try transaction.duePending(at: now, limit: configuration.operationsMax * 8)
        }
        var notices = Notices()
        for pending in due where occupiedCount < operationsMax && state.running[pending.subject] == nil {
            if isBusy, now.rawValue - pending.since.rawValue < SyncEngine.patience.nanoseconds { continue }
            do throws(Failure) {
                if let operation = try take(pending, &notices) { start(operation) }
            } catch {
                // An item whose content cannot be read must not hold up the others. If the index is what fails, this does, too.
                try setAside(pending, because: error)
            }
        }
        send(notices)
    }

    /// Of the places for operations. What is small takes round trips; of what is large a few fill any line.
    var occupiedCount: Int {
        state.running.values.reduce(0) { $0 + ($1.byteCount > SyncEngine.largeByteCount ? 2 : 1) }
    }

    private static let largeByteCount: UInt64 = 1 << 20

    /// The operation that pending work amounts to; nil when it is done or has to wait.
    private func take(_ pending: Pending, _ notices: inout Notices) throws(Failure) -> Operation? {
        try index.write { transaction throws(Failure) in
            switch try prepare(pending, &notices, transaction) {
            case .done:
                try transaction.deletePending(pending.subject)
                return nil
            case .later(let delay):
                guard var row = try transaction.pending(pending.subject) else { return nil }
                row.due = clock.now().advanced(by: delay)
                try transaction.setPending(row)
                return nil
            case .start(let operation):
                return operation
            }
        }
    }

    private func setAside(_ pending: Pending, because failure: Failure) throws(Failure) {
        logger.warning("an item cannot be sent", metadata: ["reason": "\(failure.message)"])
        try index.write { transaction throws(Failure) in
            guard var row = try transaction.pending(pending.subject) else { return }
            row.attempts += 1
            row.due = clock.now().advanced(by: configuration.backoff.delay(after: row.attempts))
            row.error = failure.code
            row.message = failure.message
            try transaction.setPending(row)
        }
    }

    private func start(_ operation: Operation) {
        var running = operation
        running.task = Task { [provider, mailbox] in
            let result = await operation.run(provider)
            mailbox.post { $0.finished(operation, result) }
        }
        state.running[operation.subject] = running
    }

    private func prepare(
        _ pending: Pending, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try isPathInMotion(of: pending.subject, transaction) { return .later(SyncEngine.blockedDelay) }
        return switch pending.subject {
        case .deletion(let identifier): try prepareDeletion(identifier, &notices, transaction)
        case .entry(let id): try prepareEntry(id, pending, &notices, transaction)
        }
    }

    // MARK: Deletions

    private func prepareDeletion(
        _ identifier: ItemIdentifier, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try transaction.entry(for: identifier) != nil { return .done }
        guard case .deleteRemote(let base) = plan(try observation(of: identifier, nil, transaction)) else {
            // The provider has news of the item: those are followed first.
            _ = try follow(identifier, depth: 0, &notices, transaction)
            return try isRemoved(identifier, transaction) ? .later(SyncEngine.blockedDelay) : .done
        }
        if base.kind == .folder, try transaction.hasSyncedChildren(of: identifier) {
            try remindOfChildren(of: identifier, transaction)
            return .later(SyncEngine.blockedDelay * 4)
        }
        guard let reference = try self.reference(to: identifier, transaction) else {
            return try prepareDeletionWithoutPath(identifier, transaction)
        }
        let place = base.parent.map { Place(parent: $0, name: base.name) }
        return .start(
            Operation(
                subject: .deletion(identifier), work: .delete(reference, base: base.version),
                kind: .delete, identifier: identifier, node: nil, edits: 0, places: place.map { [$0] } ?? [], byteCount: 0))
    }

    /// The folder it was in is gone at the provider, or it was moved to one that nobody here knows.
    private func prepareDeletionWithoutPath(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if case .present? = try transaction.remote(identifier) {
            // It will be met when that folder is listed.
            try forgetItem(identifier, transaction)
            return .done
        }
        state.missing.insert(identifier)
        return .later(SyncEngine.blockedDelay * 4)
    }

    /// What was removed here and is still agreed to be at the provider.
    private func isRemoved(_ identifier: ItemIdentifier, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard try transaction.entry(for: identifier) == nil else { return false }
        return try transaction.synced(identifier) != nil
    }

    // MARK: Entries

    private func prepareEntry(
        _ id: EntryID, _ pending: Pending, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        guard let entry = try transaction.entry(id), !entry.isExcluded, let node = try transaction.node(entry.node),
            node.kind.isStorable
        else { return .done }
        if let identifier = entry.identifier, try transaction.remote(identifier) != nil {
            guard try follow(identifier, depth: 0, &notices, transaction) else { return .later(SyncEngine.blockedDelay) }
            guard let current = try transaction.entry(id) else { return .done }
            return try prepareKnown(current, pending, &notices, transaction)
        }
        return try prepareKnown(entry, pending, &notices, transaction)
    }

    private func prepareKnown(
        _ entry: Entry, _ pending: Pending, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        let observation = try observation(of: entry.identifier, entry, transaction)
        guard let node = try transaction.node(entry.node) else { return .done }
        switch plan(observation) {
        case .keepBoth(let item):
            guard try observer.mayFollow(.replaced, of: node.id, transaction) else {
                state.waitingForClaims.insert(pending.subject)
                return .later(SyncEngine.blockedDelay)
            }
            return try prepareConflict(entry, node, item, &notices, transaction)
        case .create:
            return try prepareCreation(entry, node, pending, &notices, transaction)
        case .push(let content, let place, let metadata):
            guard let synced = observation.synced else { return .done }
            return try prepareChange(
                entry, node, synced, content: content, place: place, metadata: metadata, pending, &notices, transaction)
        default:
            return .done
        }
    }

    private func prepareCreation(
        _ entry: Entry, _ node: Node, _ pending: Pending, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        guard let parent = try identifier(of: entry.parent, transaction) else {
            state.blocked[entry.parent, default: []].insert(pending.subject)
            return .later(.seconds(5))
        }
        // One after the other at each place, so that what the index knows of the last one is not overwritten.
        if isBusy(Place(parent: parent, name: entry.name)) { return .later(SyncEngine.blockedDelay) }
        if let removed = try removedItem(at: Place(parent: parent, name: entry.name), transaction) {
            if try adopt(removed, by: entry, transaction) { return .later(.zero) }
            try remind(.deletion(removed.identifier), transaction)
            return .later(SyncEngine.blockedDelay)
        }
        if try isHeld(Place(parent: parent, name: entry.name), transaction) { return .later(SyncEngine.blockedDelay) }
        guard let folder = try reference(to: parent, transaction) else {
            // No path leads to the folder: what has become of it shows when it is looked at itself.
            for entry in try transaction.entries(of: entry.parent) { try remind(.entry(entry.id), transaction) }
            return .later(.seconds(1))
        }
        var source: UploadSource?
        if node.kind == .file {
            if let wait = try waitForContent(node, &notices, transaction) {
                if let problem = wait.problem { throw problem }
                return .later(wait.delay)
            }
            source = try UploadSource(content, node: node.id, generation: node.generation)
        }
        let item = NewItem(name: entry.name, kind: node.kind, metadata: Metadata(node), target: node.target)
        let sent = try storeSent(
            SentChange(
                entry: entry.id, item: nil, isMove: false, parent: parent, name: entry.name, kind: node.kind, edits: node.edits,
                size: source?.size ?? node.size, modificationTime: node.modificationTime, base: nil, target: node.target),
            transaction)
        return .start(
            Operation(
                subject: pending.subject, work: .create(item, in: folder, source), kind: .create, identifier: nil, node: node.id,
                edits: node.edits, places: [Place(parent: parent, name: entry.name)], byteCount: source?.dataByteCount ?? 0,
                sent: sent))
    }

    private func prepareChange(
        _ entry: Entry, _ node: Node, _ synced: Item, content hasContent: Bool, place: Bool, metadata: Bool, _ pending: Pending,
        _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try isLost(synced, transaction) {
            try keepWhatIsHere(entry, &notices, transaction)
            return try transaction.entry(entry.id) == nil ? .done : .later(.zero)
        }
        guard let reference = try self.reference(to: synced.identifier, transaction) else { return .later(.seconds(1)) }
        let agreedEdits = try transaction.synced(synced.identifier)?.edits ?? node.edits
        var changes = ItemChanges()
        var places: [Place] = synced.parent.map { [Place(parent: $0, name: synced.name)] } ?? []
        var (hasContent, metadata) = (hasContent, metadata)
        if place {
            let target: Place
            switch try route(of: entry, synced, transaction) {
            case .free(let place): target = place
            case .circle(let aside): (target, hasContent, metadata) = (aside, false, false)
            case .taken: return .later(SyncEngine.blockedDelay)
            case .homeless:
                state.blocked[entry.parent, default: []].insert(pending.subject)
                return .later(.seconds(5))
            }
            guard let folder = try self.reference(to: target.parent, transaction) else { return .later(.seconds(1)) }
            if try mayHaveGoneElsewhere(synced, than: target, transaction) {
                askFirst(for: synced.identifier)
                return .later(SyncEngine.blockedDelay)
            }
            changes.place = (folder, target.name)
            places.append(target)
        }
        if metadata || hasContent { changes.metadata = Metadata(node) }
        var source: UploadSource?
        if hasContent && node.kind == .link {
            changes.target = node.target
        } else if hasContent {
            if let wait = try waitForContent(node, &notices, transaction) {
                // A move need not wait for the content.
                if !place, let problem = wait.problem { throw problem }
                guard place else { return .later(wait.delay) }
                changes.metadata = nil
            } else {
                source = try UploadSource(content, node: node.id, generation: node.generation)
            }
        }
        var sent: SentID?
        if let place = places.last {
            let isEdited = source != nil || changes.target != nil
            sent = try storeSent(
                SentChange(
                    entry: entry.id, item: synced.identifier, isMove: knowsByPlace && places.count > 1, parent: place.parent,
                    name: place.name, kind: node.kind, edits: source == nil ? agreedEdits : node.edits,
                    size: source?.size ?? synced.size,
                    modificationTime: (changes.metadata ?? synced.metadata).modificationTime,
                    base: isEdited ? nil : synced.version, target: changes.target ?? synced.target), transaction)
        }
        let edits = source == nil && node.kind == .file ? agreedEdits : node.edits
        return .start(
            Operation(
                subject: pending.subject, work: .modify(reference, changes, source, base: synced.version),
                kind: hasContent ? .upload : place ? .move : .metadata, identifier: synced.identifier, node: node.id,
                edits: edits,
                places: places, byteCount: source?.dataByteCount ?? 0, sent: sent))
    }

    /// Why content is not sent now.
    private struct Wait {
        var delay: Duration
        /// It cannot be had, so that the item counts as failing.
        var problem: Failure?
    }

    /// nil when the content may be sent now.
    private func waitForContent(
        _ node: Node, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Wait? {
        if node.content != .whole {
            notices.hydrate.append(node.id)
            let problem = hydrator.problem(of: node.id).map {
                Failure($0.code, "the rest of its content cannot be fetched, and it is sent only whole: \($0.message)")
            }
            return Wait(delay: .seconds(1), problem: problem)
        }
        let holes = try transaction.holes(of: node.id)
        if !holes.ranges.isEmpty {
            return Wait(delay: .seconds(30), problem: Failure(.stale, incompleteness(holes)))
        }
        guard node.isOpenForWriting, !state.isDraining else { return nil }
        guard let status = try content.status(node.id, node.generation) else { return nil }
        let quiet = Duration.nanoseconds(clock.now().rawValue - status.modificationTime.rawValue)
        return quiet >= SyncEngine.quietPeriod ? nil : Wait(delay: SyncEngine.quietPeriod - quiet)
    }

    private func prepareConflict(
        _ entry: Entry, _ node: Node, _ item: Item, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        // After a crash our own upload may be what looks like somebody else's edit, so equal contents are no conflict.
        if node.kind == .file, node.content == .whole, let reference = try self.reference(to: item.identifier, transaction) {
            let source = try UploadSource(content, node: node.id, generation: node.generation)
            if source.size == item.size {
                return .start(
                    Operation(
                        subject: .entry(entry.id), work: .compare(reference, item.version, source), kind: .compare,
                        identifier: item.identifier, node: node.id, edits: node.edits, places: [], byteCount: source.size))
            }
        }
        try keepBoth(entry, item, &notices, transaction)
        return try transaction.pending(.entry(entry.id)) == nil ? .done : .later(.zero)
    }
}
