import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

// What the provider was told and has not answered, and recognising in what it shows that it was
// carried out.
//
// An operation may take effect without its outcome being stored. Without this, a file that was
// uploaded, removed here and not yet acknowledged would come back, and a second rename would be
// undone. An answer that says "it did not happen" takes the mark away again: what looks like it
// later is somebody else's.

extension SentChange {
    /// Whether the item is what the operation would have left. A folder's size and time say
    /// nothing. A file's size alone says nothing either: where the store tells no time, contents
    /// are compared (`prepareConflict`).
    func isDone(_ item: Item, comparesTimes: Bool) -> Bool {
        guard item.kind == kind, item.parent == parent, item.name == name else { return false }
        switch kind {
        case .folder: return true
        case .link: return item.target == target
        default: return hasContent(item, comparesTimes: comparesTimes)
        }
    }

    /// Whether the item has the operation's content and not its place: a provider replaces content
    /// first and moves then. Without a time it cannot be told from somebody else's edit.
    func isHalfDone(_ item: Item, known: Item, comparesTimes: Bool) -> Bool {
        guard comparesTimes, kind == .file, item.kind == .file, self.item == item.identifier else {
            return false
        }
        let isWhereItWas = item.parent == known.parent && item.name == known.name
        return isWhereItWas && hasContent(item, comparesTimes: true)
    }

    /// A link that was made or moved there. One whose move was refused again and again stands somewhere
    /// else: what is at the place is somebody else's.
    func mayBeShownAsFile(_ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard kind == .link else { return false }
        if item == nil { return true }
        return try transaction.pending(.entry(entry)).map { $0.attempts < 4 || $0.error != .stale } ?? true
    }

    /// Whether what is at the place may be the item that was moved there. No content is agreed on
    /// by it.
    func mayBeMoved(_ found: Item, comparesTimes: Bool) -> Bool {
        guard found.kind == kind, found.parent == parent, found.name == name else { return false }
        if kind == .folder { return true }
        if hasContent(found, comparesTimes: comparesTimes) { return true }
        // Content that went with the move has a version that nobody here knows.
        return !comparesTimes && base == nil && found.size == size
    }

    /// The item is another entry's now, or others' content took the name here before it was known
    /// that what was sent had arrived, as it can at a provider that does not compare versions:
    /// nobody has either of them here, and what arrived is followed.
    func isOvertaken(
        _ shown: Entry, by item: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if shown.id != entry { return true }
        guard base == nil, let node = try transaction.node(shown.node),
            node.content == .absent, let agreed = try transaction.synced(item.identifier),
            agreed.item.version != item.version
        else { return false }
        return node.edits == agreed.edits && node.edits != edits
    }

    private func hasContent(_ item: Item, comparesTimes: Bool) -> Bool {
        guard item.size == size else { return false }
        if let base, item.version == base { return true }
        return comparesTimes && item.metadata.modificationTime == modificationTime
    }
}

extension Turn {
    /// In the transaction that prepares the operation, so that it is stored before anything is
    /// sent.
    func storeSent(_ sent: SentChange, _ transaction: borrowing Transaction) throws(Failure)
        -> SentID
    {
        if sent.isMove, let item = sent.item {
            // What was sent to where the item is may have come there without an answer, and so may
            // an earlier try of this move. Another move came to nothing.
            let inPlace = try transaction.editsInPlace(of: item)
            for old in try transaction.sentChanges(of: item) where !inPlace.contains(old.id) {
                let isSame = old.sent.parent == sent.parent && old.sent.name == sent.name
                if !isSame { try transaction.deleteSent(old.id) }
            }
        }
        return try transaction.insertSent(sent)
    }

    /// The provider says that it did not carry the operation out. What an earlier try of the same
    /// has left may still be there.
    func forgetRefused(
        _ operation: Operation, _ problem: ProviderError, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let sent = operation.sent, problem.saysThatNothingHappened, !operation.hasTwoSteps
        else { return }
        try transaction.deleteSent(sent)
        if problem.code == .conflict { try forgetMove(operation, transaction) }
    }

    /// A move was refused: the name is taken, or the item has another version. An earlier try may
    /// have led there, unless the name has another thing of ours that was made without an answer.
    private func forgetMove(_ operation: Operation, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        guard facts.knowsByPlace, operation.isMove, let item = operation.identifier,
            let place = operation.places.last,
            try transaction.sentChanges(to: place.parent, place.name)
                .contains(where: { $0.sent.item == nil })
        else { return }
        let inPlace = try transaction.editsInPlace(of: item)
        for old in try transaction.sentChanges(of: item) where !inPlace.contains(old.id) {
            if old.sent.parent == place.parent && old.sent.name == place.name {
                try transaction.deleteSent(old.id)
            }
        }
    }

    /// Contents that were sent to an item, or to its place, and may be what it has now.
    func sentCandidates(
        of item: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> [(id: SentID, sent: SentChange)] {
        var known = try transaction.sentChanges(of: item.identifier)
        if let parent = item.parent {
            known += try transaction.sentChanges(to: parent, item.name).filter { $0.sent.item == nil }
        }
        return known.filter { $0.sent.digest != nil && $0.sent.size == item.size }
    }

    /// The item's content is none of them, as a comparison has shown.
    func forgetCandidates(for item: Item, _ transaction: borrowing Transaction) throws(Failure) {
        for candidate in try sentCandidates(of: item, transaction) {
            try transaction.deleteSent(candidate.id)
        }
    }

    /// The outcome is known. False when nobody waits for it any more: the entry went with a folder
    /// that others removed.
    func forgetAnswered(_ operation: Operation, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool
    {
        let isAwaited =
            try operation.sent.map { sent throws(Failure) in try transaction.sent(sent) != nil }
            ?? true
        if let identifier = operation.identifier {
            // What was removed, or was not there any more, may have been moved elsewhere by an
            // earlier try.
            try transaction.deleteSent(of: identifier, keepsMoves: operation.kind == .delete)
        }
        if let place = operation.places.last,
            operation.identifier == nil || operation.isMove
        {
            try transaction.deleteSent(to: place.parent, place.name)
        }
        return isAwaited
    }

    /// Nothing is left of it, nor of what else was sent to its item or place.
    private func forgetSent(_ sent: SentChange, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        if let item = sent.item { try transaction.deleteSent(of: item) }
        if sent.item == nil || sent.isMove {
            try transaction.deleteSent(to: sent.parent, sent.name)
        }
    }

    /// True when the item is what an operation of ours left whose outcome was never stored; then it
    /// is stored now.
    mutating func recognize(_ item: Item, _ transaction: borrowing Transaction) throws(Failure)
        -> Bool
    {
        guard let parent = item.parent, try transaction.hasSent() else { return false }
        let known = try transaction.synced(item.identifier)?.item
        let comparesTimes = facts.keepsTimes && !item.isGuess
        let ofItem = try transaction.sentChanges(of: item.identifier).map(\.sent)
        // What is known to be there is not what was to be made or moved there, however alike they are.
        let ofPlace = try transaction.sentChanges(to: parent, item.name).map(\.sent)
            .filter { known == nil || $0.item == item.identifier }
        if item.isGuess, known == nil, item.kind != .link {
            for sent in ofPlace where try sent.mayBeShownAsFile(transaction) {
                // A listing that does not tell of links may show the one that was sent as a file.
                listAgain(parent, after: .seconds(1))
                return true
            }
        }
        for (changes, isPlace) in [(ofItem, false), (ofPlace, true)] {
            let found = changes.last { sent in
                let isHalfDone =
                    known.map { sent.isHalfDone(item, known: $0, comparesTimes: comparesTimes) }
                    ?? false
                return isHalfDone || sent.isDone(item, comparesTimes: comparesTimes)
            }
            guard let sent = found else { continue }
            let former = item.identifier
            guard let item = try OwnMoves.identified(item, as: sent, transaction) else { return false }
            // Under way right now: its outcome will tell, and nothing is to be made of the item
            // before.
            if memory.operations.isBusy(ItemPlace(parent: parent, name: item.name)) { return true }
            explain("\(item.name) is what was sent of edits \(sent.edits)\(sent.isMove ? ", moved" : "")")
            switch try SentTwice.finding(item, as: sent, &self, transaction) {
            case .own: break
            case .doubtful: return true
            case .others:
                try forgetSent(sent, transaction)
                return false
            }
            if item.identifier != former { try transaction.setRemote(former, nil) }
            try forgetSent(sent, transaction)
            if !isPlace { try transaction.deleteSent(of: item.identifier) }
            let agreed = try transaction.synced(item.identifier)?.item
            try acknowledge(item, sent, transaction)
            remember { $0.operations.recognized(item, knownAs: agreed) }
            return true
        }
        return false
    }

    private mutating func acknowledge(
        _ item: Item, _ sent: SentChange, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if let shown = try transaction.entry(for: item.identifier) {
            if try sent.isOvertaken(shown, by: item, transaction), try !keepEdited(shown, item, sent, transaction) {
                // Where it is we have brought it: only its content is followed.
                if var agreed = try transaction.synced(item.identifier) {
                    (agreed.item.parent, agreed.item.name) = (item.parent, item.name)
                    try transaction.setSynced(agreed)
                    try remind(.entry(shown.id), transaction)
                }
                try transaction.setRemote(item.identifier, .present(item))
                return noteDivergence()
            }
            let before = try transaction.synced(item.identifier)
            try Agreement.reach(item, sent, &self, transaction)
            if sent.base == nil, var node = try transaction.node(shown.node), node.edits == sent.edits {
                node.version = item.version
                try transaction.update(node)
            }
            try OwnMoves.readBack(item, sent, shown, agreedBefore: before, &self, transaction)
            return try remind(.entry(shown.id), transaction)
        }
        guard var entry = try transaction.entry(sent.entry) else {
            // Its name was removed here before the acknowledgement came.
            try Agreement.reach(item, sent, &self, transaction)
            return try remind(.deletion(item.identifier), transaction)
        }
        if entry.isExcluded {
            // Nobody has removed it.
            try transaction.setRemote(item.identifier, .present(item))
            return noteDivergence()
        }
        if entry.identifier != nil {
            // What it was made of has another item meanwhile: it was made anew under another name, or
            // another name of it was removed, or a folder that it was moved over, whose item it got. This
            // one is ours, and of no use to anybody: a folder into which others have put something stays.
            try Agreement.reach(item, sent, &self, transaction)
            return try remind(.deletion(item.identifier), transaction)
        }
        try Agreement.reach(item, sent, &self, transaction)
        entry.identifier = item.identifier
        try transaction.update(entry)
        if item.kind == .folder { noteMade(item.identifier) }
        if var node = try transaction.node(entry.node), node.version != item.version {
            node.version = item.version
            try transaction.update(node)
        }
        try remind(.entry(entry.id), transaction)
    }

    /// Another node is shown for the item now, and counts its edits for itself. When it was edited the one
    /// before is what it was edited from; false when it was not, and follows the provider.
    private func keepEdited(
        _ shown: Entry, _ item: Item, _ sent: SentChange, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let agreed = try transaction.synced(item.identifier),
            agreed.item.version != item.version, var node = try transaction.node(shown.node),
            node.edits != agreed.edits
        else { return false }
        if node.edits == sent.edits {
            node.succeed(sent.edits)
            try transaction.update(node)
            try NodeNames.remind(node.id, self, transaction)
        }
        return true
    }
}

extension Transaction {
    /// Operations on an item that were to leave it where it was agreed to be.
    fileprivate func editsInPlace(of identifier: ItemIdentifier) throws(Failure) -> Set<SentID> {
        guard let agreed = try synced(identifier)?.item, let parent = agreed.parent
        else { return [] }
        let known = try sentChanges(of: identifier)
        return Set(
            known.filter { $0.sent.parent == parent && $0.sent.name == agreed.name }.map(\.id))
    }
}

extension ProviderError {
    /// The answer is certain: the provider looked at what was asked and did not do it.
    var saysThatNothingHappened: Bool {
        switch code {
        case .conflict, .notFound, .stale, .refused, .outOfSpace: true
        default: false
        }
    }
}
