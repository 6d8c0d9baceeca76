import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// Storing what became of an operation.
enum Answering {
    static func told(
        _ operation: Operation, _ result: Result<Operation.Outcome, ProviderError>,
        _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let now = turn.now.uptime
        turn.remember { memory in
            memory.operations.ended(operation)
            if memory.operations.count.isMultiple(of: OperationMemory.lookInterval) {
                memory.forgetTouched(at: now)
            }
            if let identifier = operation.identifier {
                memory.questions.placesSeen.remove(identifier)
                memory.questions.placesAsked[identifier] = nil
                memory.questions.movesLookedFor.remove(identifier)
            }
            // A look from before says nothing of it.
            if operation.isMove, let place = operation.places.last {
                memory.questions.looks[place.parent] = nil
            }
        }
        switch result {
        case .success(let outcome):
            try UnansweredRemovals.ended(operation, nil, &turn, transaction)
            try store(outcome, of: operation, &turn, transaction)
            if case .item = outcome { turn.act(.uploaded(byteCount: operation.byteCount)) }
            Stepping.told(operation, nil, &turn)
        case .failure(let problem):
            turn.judge(problem)
            try turn.forgetRefused(operation, problem, transaction)
            try UnansweredRemovals.ended(operation, problem, &turn, transaction)
            try postpone(operation, problem, &turn, transaction)
            Stepping.told(operation, problem, &turn)
        }
        if let id = operation.node, try transaction.node(id)?.pin == .onlineOnly {
            turn.act(.evict(id))
        }
        // Now the index knows where that is.
        if operation.isMove { Listings.startWhatWasInMotion(&turn) }
        try FolderTimes.told(operation, &turn, transaction)
        // A change seen while the operation ran was not believed; it is looked at now.
        turn.noteDivergence()
    }

    private static func store(
        _ outcome: Operation.Outcome, of operation: Operation, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        if case .compared(let remote, let local) = outcome {
            // What was sent before is what is compared with.
            return try storeComparison(operation, remote, local, &turn, transaction)
        }
        if case .item(let item) = outcome, try isOfAnother(item, operation, turn, transaction) {
            return try postpone(
                operation,
                ProviderError(.permanent, "the provider says that what was made is an item that was there before"),
                &turn, transaction)
        }
        let digest = try operation.sent.flatMap { id throws(Failure) in try transaction.sent(id)?.digest }
        try LateCreations.answered(operation, &turn, transaction)
        if case .item(let item) = outcome {
            try OwnMoves.agree(onAnswerTo: operation, item, turn, transaction)
        }
        let isAwaited = try turn.forgetAnswered(operation, transaction)
        if case .item(let item) = outcome, let id = operation.node,
            let node = try transaction.node(id),
            (node.kind == .folder) != (item.kind == .folder)
        {
            // Agreed on, it would stand here as the other for ever: no later listing would differ.
            return try postpone(
                operation, ProviderError(.conflict, "something else came in its place meanwhile"),
                &turn, transaction)
        }
        switch outcome {
        case .deleted:
            try storeDeletion(operation, &turn, transaction)
        case .item(let item):
            try ToldMove.note(operation, turn.facts, transaction)
            let item = try turn.identified(item, by: operation, transaction)
            try storeItem(item, of: operation, isAwaited: isAwaited, &turn, transaction)
            if let digest, try transaction.synced(item.identifier) != nil {
                try transaction.setFingerprint(
                    Fingerprint(version: item.version, size: item.size, digest: digest), of: item.identifier)
            }
        case .compared: break
        }
        try planAgain(operation, &turn, transaction)
    }

    /// What was made has the identifier of an item that had a name here before there was anything to be made: taken
    /// for it, its content would be replaced. Where places are identifiers a place may have been another item's.
    private static func isOfAnother(
        _ item: Item, _ operation: Operation, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard !turn.facts.knowsByPlace, operation.identifier == nil, case .entry(let id) = operation.subject,
            let other = try transaction.entry(for: item.identifier), other.id != id
        else { return false }
        return other.id.rawValue < id.rawValue
    }

    /// Another version is not another content, and may be what an earlier try of ours has sent.
    private static func storeComparison(
        _ operation: Operation, _ remote: String, _ local: String?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = operation.identifier, case .compare(let comparison) = operation.work,
            case .present(let item)? = try transaction.remote(identifier),
            item.version == comparison.version
        else { return try planAgain(operation, &turn, transaction) }
        if let edits = try editsOf(remote, local, operation, item, &turn, transaction) {
            if remote != local { try keepEdited(operation, than: edits, turn, transaction) }
            try OwnMoves.agree(on: item, transaction)
            let isTold = try turn.sentCandidates(of: item, transaction)
                .contains { $0.sent.digest == remote && $0.sent.tellsRights }
            try Agreement.reachContent(of: item, edits: edits, isTold: isTold, &turn, transaction)
            try forgetMade(item, digest: remote, turn, transaction)
            try setVersion(item.version, of: operation, &turn, transaction)
            try transaction.setFingerprint(
                Fingerprint(version: item.version, size: item.size, digest: remote), of: identifier)
        } else if let local, var synced = try agreed(identifier, digest: local, transaction),
            try !isOfAnother(operation, than: synced, transaction)
        {
            // The same bytes were written anew here: the only edit is theirs.
            synced.edits = operation.edits
            try transaction.setSynced(synced)
        } else if case .entry(let id) = operation.subject, let entry = try transaction.entry(id),
            entry.identifier == identifier
        {
            return try Tree.keepBoth(entry, item, &turn, transaction)
        } else {
            // It comes back, as it was edited by others.
            try transaction.setFingerprint(nil, of: identifier)
            try turn.forgetCandidates(for: item, transaction)
        }
        guard case .deletion = operation.subject else {
            return try planAgain(operation, &turn, transaction)
        }
        try turn.makeDue([operation.subject], transaction)
    }

    /// The content here came from another item, as by an exchange, and may have been taken back from
    /// there: others believe that it is there, and this may be the last one.
    private static func isOfAnother(
        _ operation: Operation, than synced: SyncedItem, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let id = operation.node, let version = try transaction.node(id)?.version else { return false }
        return version != synced.item.version
    }

    /// Which of the node's edits the provider's content is; nil: somebody else's.
    private static func editsOf(
        _ remote: String, _ local: String?, _ operation: Operation, _ item: Item, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> UInt64? {
        if remote == local { return operation.edits }
        let sent = try turn.sentCandidates(of: item, transaction)
        turn.explain("compared with what is here and \(sent.count) contents that were sent")
        if let found = sent.last(where: { $0.sent.digest == remote }) { return found.sent.edits }
        return try agreed(item.identifier, digest: remote, transaction)?.edits
    }

    /// The item is what was to be made at its place. What has this content there later, as when others
    /// have moved the item away and back, was not made by that call.
    private static func forgetMade(
        _ item: Item, digest: String, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for (id, sent) in try turn.sentCandidates(of: item, transaction)
        where sent.item == nil && sent.digest == digest {
            try transaction.deleteSent(id)
        }
    }

    /// What was agreed on, where it has this content.
    private static func agreed(
        _ identifier: ItemIdentifier, digest: String, _ transaction: borrowing Transaction
    ) throws(Failure) -> SyncedItem? {
        let known = try transaction.fingerprint(of: identifier)
        guard let synced = try transaction.synced(identifier), known?.digest == digest,
            known?.version == synced.item.version
        else { return nil }
        return synced
    }

    /// The provider has what was sent from another node of the name, which counted its edits for itself: it
    /// is not to be taken for what is here.
    private static func keepEdited(
        _ operation: Operation, than edits: UInt64, _ turn: borrowing Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let id = operation.node, var node = try transaction.node(id), node.edits == edits else { return }
        node.succeed(edits)
        try transaction.update(node)
        // With the items of its other names it is not agreed on any more either.
        try NodeNames.remind(id, turn, transaction)
    }

    private static func storeDeletion(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let identifier = operation.identifier else { return }
        let known = try transaction.synced(identifier)?.item
        if let known { try OwnRemoval.note(operation, known, transaction) }
        // Made anew here while the provider removed it: from now on that is an item of its own.
        if let entry = try transaction.entry(for: identifier) {
            try Tree.keepAsNew(entry, &turn, transaction)
        }
        try turn.forgetItem(identifier, keepsMoves: true, transaction)
        // A folder waits until the last thing in it is gone.
        if let parent = known?.parent, var waiting = try transaction.pending(.deletion(parent)),
            try !transaction.hasSyncedChildren(of: parent)
        {
            waiting.due = turn.now.time
            try transaction.setPending(waiting)
        }
    }

    private static func storeItem(
        _ item: Item, of operation: Operation, isAwaited: Bool, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        turn.remember { $0.operations.touchedItems[item.identifier] = $0.operations.count }
        guard case .entry(let id) = operation.subject else { return }
        guard var entry = try transaction.entry(id), !entry.isExcluded else {
            return try storeWithoutEntry(
                item, of: operation, isAwaited: isAwaited, &turn, transaction)
        }
        // Before it is forgotten where the item has another identifier now.
        let known = try operation.identifier.flatMap { id throws(Failure) in
            try transaction.synced(id)?.item
        }
        if let old = operation.identifier, old != item.identifier {
            try turn.forgetItem(old, transaction)
            try transaction.moveVersions(from: old, to: item.identifier)
        }
        if operation.identifier == nil, let adopted = entry.identifier, adopted != item.identifier {
            // While it was made, it took over the item of a name that was removed here, and stays that.
            return try storeWithoutEntry(item, of: operation, isAwaited: true, &turn, transaction)
        }
        var news: Item?
        if entry.identifier != item.identifier {
            news = try EarlyNews.giveWay(item, to: entry, &turn, transaction)
            entry.identifier = item.identifier
            try transaction.update(entry)
            try FirstNames.lookForLeft(by: entry, &turn, transaction)
        }
        var agreed = operation.agreed(on: item, known: known, keepsTimes: turn.facts.keepsTimes)
        if let id = operation.node, let node = try transaction.node(id), node.kind != item.kind {
            // A listing that does not tell of links had shown one as a file: it is followed as news.
            agreed.kind = node.kind
        }
        try transaction.setSynced(SyncedItem(item: agreed, edits: operation.edits))
        let isSamePlace = agreed.parent == item.parent && agreed.name == item.name
        let told = try turn.withAgreedMetadata(item, transaction)
        let isNews = operation.showsNews(told, than: agreed)
        if let news {
            try transaction.setRemote(item.identifier, .present(news))
            turn.noteDivergence()
        } else if agreed.version == item.version, agreed.kind == item.kind, isSamePlace, !isNews {
            try transaction.setRemote(item.identifier, nil)
        } else {
            try transaction.setRemote(item.identifier, .present(told))
        }
        // Made, or moved in a store that calls it something else now.
        if item.kind == .folder, operation.identifier != item.identifier {
            turn.noteMade(item.identifier)
        }
        try setVersion(agreed.version, of: operation, &turn, transaction)
        if let node = operation.node { try turn.unblock(node, transaction) }
    }

    /// The name went while the provider was told of it. When somebody here removed it the provider
    /// is told of that now; when it went with a folder that others removed, the item is news.
    private static func storeWithoutEntry(
        _ item: Item, of operation: Operation, isAwaited: Bool, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard isAwaited else {
            try transaction.setRemote(item.identifier, .present(item))
            return
        }
        try transaction.setSynced(SyncedItem(item: item, edits: operation.edits))
        try transaction.setRemote(item.identifier, nil)
        try turn.remind(.deletion(item.identifier), transaction)
    }

    private static func setVersion(
        _ version: ContentVersion, of operation: Operation, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let id = operation.node, var node = try transaction.node(id), node.version != version
        else { return }
        node.version = version
        try transaction.update(node)
    }

    /// What was done here while the operation ran is planned after the usual quiet time; otherwise
    /// nothing is pending.
    private static func planAgain(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let subject = operation.subject
        var isDone = true
        switch subject {
        case .entry(let id):
            if let entry = try transaction.entry(id), !entry.isExcluded {
                let observation = try turn.observation(of: entry.identifier, entry, transaction)
                isDone = turn.decide(entry.identifier, entry, observation, .answer) == .nothing
            }
        case .deletion(let identifier):
            // Two comparisons of one content may have been under way.
            let isShown = try transaction.entry(for: identifier) != nil
            let isAgreed = try transaction.synced(identifier) != nil
            isDone = isShown || !isAgreed
        }
        try recordUpload(of: subject, &turn, transaction)
        guard !isDone, var row = try transaction.pending(subject) else {
            turn.remember { $0.operations.torn[subject] = nil }
            try transaction.deletePending(subject)
            return
        }
        row.attempts = 0
        row.error = nil
        row.message = nil
        row.due = max(row.due, turn.now.time)
        Unrest.sent(operation, &row, &turn)
        try transaction.setPending(row)
    }

    /// Who follows the item hears that the provider has it now, or does not take it.
    private static func recordUpload(
        of subject: Pending.Subject, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard case .entry(let id) = subject, let entry = try transaction.entry(id) else { return }
        try transaction.record(.upload, node: entry.node, parent: entry.parent, name: entry.name)
    }

    // MARK: Trouble

    private static func postpone(
        _ operation: Operation, _ problem: ProviderError, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard var row = try transaction.pending(operation.subject) else { return }
        let now = turn.now.time
        row.attempts += 1
        let backoff = turn.facts.configuration.backoff.delay(after: row.attempts)
        switch problem.code {
        case .sourceChanged:
            row.attempts = 0
            Unrest.torn(&row, &turn)
        case .cancelled, .offline:
            row.attempts -= 1
            row.due = now.advanced(by: .seconds(1))
        case .conflict, .notFound, .stale:
            // The provider is not as we believed: look, then plan again.
            try lookAround(operation, &turn, transaction)
            row.due = now.advanced(by: row.attempts < 5 ? .milliseconds(300) : backoff)
        case .retryAfter(let delay):
            row.due = now.advanced(by: max(delay, .milliseconds(100)))
        case .retry:
            row.due = now.advanced(by: backoff)
        default:
            if operation.kind == .delete, problem.code == .refused, let folder = operation.identifier {
                try Reviving.lookAfterRefusal(folder, attempts: row.attempts, &turn, transaction)
            }
            row.due = now.advanced(by: max(backoff, .seconds(30)))
        }
        let wasTrouble = row.error != nil
        let isTrouble =
            row.attempts >= 3 || problem.code == .permanent || problem.code == .refused
            || problem.code == .outOfSpace
        row.error = isTrouble ? problem.failure.code : nil
        row.message = problem.message
        try transaction.setPending(row)
        if isTrouble != wasTrouble { try recordUpload(of: operation.subject, &turn, transaction) }
        turn.log(.debug, "the provider could not be told", reason: "\(problem.message)")
    }

    private static func lookAround(
        _ operation: Operation, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if let identifier = operation.identifier {
            turn.ask(for: identifier)
            if case .delete = operation.kind { try Reviving.lookInto(identifier, &turn, transaction) }
        }
        for place in operation.places { try Listings.look(at: place.parent, &turn, transaction) }
    }
}
