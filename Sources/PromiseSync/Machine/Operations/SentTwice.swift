import PromiseCore
import PromiseIndex

/// A content that was sent to two items of a store of places: to one without an answer, and, as
/// programs exchanged the two meanwhile, to the other. When others then move that other item to where
/// the first one is, it looks there like what had been sent there: like an earlier state, which what is
/// here goes beyond. It may be the last of it. Edits are counted on through exchanges, and so tell which
/// of the two was sent last.
enum SentTwice {
    /// For how long a look at the other item's folder is believed of a place at which something had
    /// been seen before it began. A large folder is listed again after half a minute.
    private static let patience = Duration.seconds(600)

    /// Others have taken away, or replaced, what an item had: what has the content elsewhere from now on
    /// is not known to be what was sent there.
    static func gone(
        _ entry: Entry, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard turn.facts.knowsByPlace, let identifier = entry.identifier,
            try transaction.hasSent(), let synced = try transaction.synced(identifier), synced.item.kind == .file
        else { return }
        let known = synced.item
        let digest = try transaction.fingerprint(of: identifier)?.digest
        let running = Set(turn.memory.operations.running.values.compactMap(\.sent))
        for (id, sent) in try ContentTwins.sent(size: known.size, transaction)
        where sent.item != identifier && (sent.base == nil || !sent.isMove) && sent.edits < synced.edits
            && !running.contains(id)
        {
            let isSame = sent.digest.flatMap { one in digest.map { one == $0 } }
            if isSame ?? (sent.modificationTime == known.metadata.modificationTime) {
                try transaction.deleteSent(id)
            }
        }
    }

    enum Finding {
        /// No other item is known to have it, or that has it still.
        case own
        /// The other item has left its place.
        case others
        /// The folder of the other item is looked at first.
        case doubtful
    }

    /// What is found with a content that was sent there.
    static func finding(
        _ item: Item, as sent: SentChange, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Finding {
        guard turn.facts.knowsByPlace, item.kind == .file, sent.base == nil, let parent = item.parent,
            // Of what was to be moved, too, the content may have come, and the move not.
            !sent.isMove || parent != sent.parent || item.name != sent.name,
            let other = try ContentTwins.synced(of: item, transaction), other.edits > sent.edits,
            let folder = other.item.parent
        else { return .own }
        if try transaction.remote(other.item.identifier) != nil { return .others }
        // What cannot be found out stays as two.
        guard let node = try turn.knownFolder(folder, transaction),
            turn.memory.listings.troubles.hopeless(node) == nil
        else { return .others }
        let now = turn.now.uptime
        let place = ItemPlace(parent: parent, name: item.name)
        let seen = turn.memory.questions.sentTwice[place]
        let since = seen.flatMap { now - $0 < patience ? $0 : nil }
        switch turn.memory.questions.looks[folder] {
        case .done(let time, let began)
        where now - time < FirstNames.lookPatience || since.map { $0 <= began } ?? false:
            turn.remember { $0.questions.sentTwice[place] = nil }
            return .own
        case .wanted(let time) where turn.memory.awaitsLook(at: folder, wantedAt: time, now):
            break
        case .done, .wanted, nil:
            turn.remember { $0.wantLook(at: folder, now) }
            turn.listAgain(folder, after: .zero)
        }
        if since == nil { noteSeen(at: place, &turn) }
        turn.listAgain(parent, after: .seconds(1))
        return .doubtful
    }

    /// The next listing that shows it may come long after the look has ended.
    private static func noteSeen(at place: ItemPlace, _ turn: inout Turn) {
        let now = turn.now.uptime
        turn.remember { memory in
            memory.questions.sentTwice.forget(before: now - patience)
            memory.questions.sentTwice[place] = now
        }
    }
}
