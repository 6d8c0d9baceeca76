import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

// Storing what became of an operation.

extension SyncEngine {
    func finished(_ operation: Operation, _ result: Result<Operation.Outcome, ProviderError>) {
        state.running[operation.subject] = nil
        state.operationCount += 1
        for place in operation.places { state.touchedPlaces[place] = state.operationCount }
        if let identifier = operation.identifier {
            state.touchedItems[identifier] = state.operationCount
            state.placesSeen.remove(identifier)
            state.placesAsked[identifier] = nil
        }
        var notices = Notices()
        do throws(Failure) {
            switch result {
            case .success(let outcome):
                try index.write { transaction throws(Failure) in try store(outcome, of: operation, &notices, transaction) }
                if case .success(.item) = result { published.withLock { $0.bytesUploaded += operation.byteCount } }
            case .failure(let problem):
                judge(problem)
                try index.write { transaction throws(Failure) in
                    try forgetRefused(operation, problem, transaction)
                    try postpone(operation, problem, transaction)
                }
            }
            send(notices)
            try evictIfOnlineOnly(operation)
        } catch {
            logger.error("an outcome could not be stored", metadata: ["reason": "\(error.message)"])
        }
        // Now the index knows where that is.
        if operation.isMove { listWhatWasInMotion() }
        // A change seen while the operation ran was not believed; it is looked at now.
        state.hasDivergences = true
    }

    private func evictIfOnlineOnly(_ operation: Operation) throws(Failure) {
        guard let id = operation.node else { return }
        let node = try index.read { transaction throws(Failure) in try transaction.node(id) }
        if node?.pin == .onlineOnly { _ = try evict(id) }
    }

    private func store(
        _ outcome: Operation.Outcome, of operation: Operation, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let isAwaited = try forgetAnswered(operation, transaction)
        if case .item(let item) = outcome, let id = operation.node, let node = try transaction.node(id),
            (node.kind == .folder) != (item.kind == .folder)
        {
            // Agreed on, it would stand here as the other for ever: no later listing would differ.
            return try postpone(operation, ProviderError(.conflict, "something else came in its place meanwhile"), transaction)
        }
        switch outcome {
        case .deleted:
            try storeDeletion(operation, &notices, transaction)
        case .item(let item):
            let item = try identified(item, by: operation, transaction)
            try storeItem(item, of: operation, isAwaited: isAwaited, transaction)
        case .equal:
            guard
                case .present(let item)? = try operation.identifier.flatMap({ id throws(Failure) in try transaction.remote(id) }),
                case .compare(_, let version, _) = operation.work, item.version == version
            else { break }
            try settleContent(of: item, edits: operation.edits, transaction)
            try setVersion(item.version, of: operation, transaction)
        case .different:
            guard case .entry(let id) = operation.subject, let entry = try transaction.entry(id),
                let identifier = entry.identifier, case .present(let item)? = try transaction.remote(identifier)
            else { break }
            try keepBoth(entry, item, &notices, transaction)
            return
        }
        try planAgain(operation.subject, transaction)
    }

    private func storeDeletion(
        _ operation: Operation, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = operation.identifier else { return }
        let parent = try transaction.synced(identifier)?.item.parent
        // Made anew here while the provider removed it: from now on that is an item of its own.
        if let entry = try transaction.entry(for: identifier) { try keepAsNew(entry, &notices, transaction) }
        try forgetItem(identifier, keepsMoves: true, transaction)
        // A folder waits until the last thing in it is gone.
        if let parent, var waiting = try transaction.pending(.deletion(parent)), try !transaction.hasSyncedChildren(of: parent) {
            waiting.due = clock.now()
            try transaction.setPending(waiting)
        }
    }

    private func storeItem(
        _ item: Item, of operation: Operation, isAwaited: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        state.touchedItems[item.identifier] = state.operationCount
        guard case .entry(let id) = operation.subject else { return }
        guard var entry = try transaction.entry(id), !entry.isExcluded else {
            return try storeWithoutEntry(item, of: operation, isAwaited: isAwaited, transaction)
        }
        if let old = operation.identifier, old != item.identifier {
            try forgetItem(old, transaction)
        }
        if entry.identifier != item.identifier {
            let handedOver = operation.identifier == nil ? entry.identifier : nil
            entry.identifier = item.identifier
            try transaction.update(entry)
            // While it was made, it took over the item of another name that was removed here.
            if let handedOver { try remind(.deletion(handedOver), transaction) }
        }
        let known = try operation.identifier.flatMap { id throws(Failure) in try transaction.synced(id)?.item }
        let agreed = operation.agreed(on: item, known: known, keepsTimes: keepsTimes)
        try transaction.setSynced(SyncedItem(item: agreed, edits: operation.edits))
        if agreed.version == item.version {
            try transaction.setRemote(item.identifier, nil)
        } else {
            try transaction.setRemote(item.identifier, .present(try withAgreedMetadata(item, transaction)))
        }
        // Made, or moved in a store that calls it something else now.
        if item.kind == .folder, operation.identifier != item.identifier {
            noteMade(item.identifier)
        }
        try setVersion(agreed.version, of: operation, transaction)
        if let node = operation.node { try unblock(node, transaction) }
    }

    /// The name went while the provider was told of it. When somebody here removed it the provider is told of that now; when
    /// it went with a folder that others removed, the item is news.
    private func storeWithoutEntry(
        _ item: Item, of operation: Operation, isAwaited: Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard isAwaited else {
            try transaction.setRemote(item.identifier, .present(item))
            return
        }
        try transaction.setSynced(SyncedItem(item: item, edits: operation.edits))
        try transaction.setRemote(item.identifier, nil)
        try remind(.deletion(item.identifier), transaction)
    }

    private func setVersion(
        _ version: ContentVersion, of operation: Operation, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let id = operation.node, var node = try transaction.node(id), node.version != version else { return }
        node.version = version
        try transaction.update(node)
    }

    /// Whatever waited for this folder to exist at the provider may go on.
    func unblock(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        guard let subjects = state.blocked.removeValue(forKey: folder) else { return }
        let now = clock.now()
        for subject in subjects {
            guard var row = try transaction.pending(subject) else { continue }
            row.due = now
            try transaction.setPending(row)
        }
    }

    /// What was done here while the operation ran is planned after the usual quiet time; otherwise nothing is pending.
    private func planAgain(_ subject: Pending.Subject, _ transaction: borrowing Transaction) throws(Failure) {
        var isDone = true
        if case .entry(let id) = subject, let entry = try transaction.entry(id), !entry.isExcluded {
            isDone = plan(try observation(of: entry.identifier, entry, transaction)) == .nothing
        }
        try recordUpload(of: subject, transaction)
        guard !isDone, var row = try transaction.pending(subject) else {
            try transaction.deletePending(subject)
            return
        }
        row.attempts = 0
        row.error = nil
        row.message = nil
        row.due = max(row.due, clock.now())
        try transaction.setPending(row)
    }

    /// Who follows the item hears that the provider has it now, or does not take it.
    private func recordUpload(of subject: Pending.Subject, _ transaction: borrowing Transaction) throws(Failure) {
        guard case .entry(let id) = subject, let entry = try transaction.entry(id) else { return }
        try transaction.record(.upload, node: entry.node, parent: entry.parent, name: entry.name)
    }

    // MARK: Trouble

    private func postpone(_ operation: Operation, _ problem: ProviderError, _ transaction: borrowing Transaction) throws(Failure)
    {
        guard var row = try transaction.pending(operation.subject) else { return }
        let now = clock.now()
        row.attempts += 1
        let backoff = configuration.backoff.delay(after: row.attempts)
        switch problem.code {
        case .sourceChanged:
            row.attempts = 0
            row.due = now.advanced(by: configuration.uploadDelay)
        case .cancelled, .offline:
            row.attempts -= 1
            row.due = now.advanced(by: .seconds(1))
        case .conflict, .notFound, .stale:
            // The provider is not as we believed: look, then plan again.
            try lookAround(operation, transaction)
            row.due = now.advanced(by: row.attempts < 5 ? .milliseconds(300) : backoff)
        case .retryAfter(let delay):
            row.due = now.advanced(by: max(delay, .milliseconds(100)))
        case .retry:
            row.due = now.advanced(by: backoff)
        default:
            row.due = now.advanced(by: max(backoff, .seconds(30)))
        }
        let wasTrouble = row.error != nil
        let isTrouble = row.attempts >= 3 || problem.code == .permanent || problem.code == .refused || problem.code == .outOfSpace
        row.error = isTrouble ? problem.failure.code : nil
        row.message = problem.message
        try transaction.setPending(row)
        if isTrouble != wasTrouble { try recordUpload(of: operation.subject, transaction) }
        logger.debug("the provider could not be told", metadata: ["kind": "\(operation.kind)", "reason": "\(problem.message)"])
    }

    private func lookAround(_ operation: Operation, _ transaction: borrowing Transaction) throws(Failure) {
        if let identifier = operation.identifier {
            state.missing.insert(identifier)
            if case .delete = operation.kind { try lookInto(identifier, transaction) }
        }
        for place in operation.places { rescan(place.parent, after: .zero) }
    }
}

extension Operation {
    /// What the provider was asked to keep.
    private var sentMetadata: Metadata? {
        switch work {
        case .create(let item, _, _): item.metadata
        case .modify(_, let changes, _, _): changes.metadata
        case .delete, .compare: nil
        }
    }

    /// What both sides agree on when the provider answers with `item`. Who only moved an item has not seen the content that
    /// somebody else gave it at the same moment. `known` is what was agreed on before.
    func agreed(on item: Item, known: Item?, keepsTimes: Bool) -> Item {
        var agreed = item
        if let sent = sentMetadata { agreed.metadata = sent }
        if case .modify(_, let changes, nil, let base) = work, changes.target == nil, item.kind != .folder {
            let isOurs = isTimeOurs(item, known: known, keepsTimes: keepsTimes)
            if !isOurs { agreed.version = base }
        }
        return agreed
    }

    /// Where versions are made of times, as in a folder, a time that was set makes another version of the same content. Any edit
    /// would have made yet another time of it.
    private func isTimeOurs(_ item: Item, known: Item?, keepsTimes: Bool) -> Bool {
        guard let known, let sent = sentMetadata?.modificationTime, sent != known.metadata.modificationTime else { return false }
        guard item.size == known.size, item.kind == known.kind else { return false }
        let time = item.metadata.modificationTime
        // FAT has steps of two seconds.
        return time == sent || (!keepsTimes && time < sent && sent.rawValue - time.rawValue < 2_000_000_000)
    }
}
