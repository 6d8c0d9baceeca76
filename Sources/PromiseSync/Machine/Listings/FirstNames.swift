import PromiseCore
import PromiseIndex
import PromiseProvider

// A file that was made under one name, whose answer did not come, and that was renamed here meanwhile,
// as when a program saves by a temporary file. Made again under its new name it would be there twice:
// the folder of its first name is listed first. What is there is recognised then, and moved.

/// What is known of a folder in which something of ours may be under another name.
enum FolderLook {
    case wanted(at: Duration)
    /// It was listed since, from `began` on: what was not recognised in it is not there. Believed
    /// for a moment, as others may be made there without an answer later.
    case done(at: Duration, began: Duration)

    var time: Duration {
        switch self {
        case .wanted(let time), .done(let time, _): time
        }
    }
}

enum FirstNames {
    /// How long a wanted listing may take to begin until it is wanted again.
    static let lookPatience = Duration.seconds(5)

    /// Whether the entry may be at the provider under another name; it is looked for then.
    static func isToBeLookedFor(
        _ entry: Entry, at place: ItemPlace, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        // Without times it would not be known again.
        guard turn.facts.keepsTimes, try transaction.hasSent() else { return false }
        for (id, sent) in try transaction.creationsSent(for: entry.id)
        where sent.parent != place.parent || sent.name != place.name {
            let (folder, now) = (sent.parent, turn.now.uptime)
            switch turn.memory.questions.looks[folder] {
            case .done(let time, _) where now - time < lookPatience:
                // What a listing that tells no times shows there is being compared with it.
                if try !isInQuestion(sent, turn, transaction) { try transaction.deleteSent(id) }
                turn.remember { $0.questions.looks[folder] = nil }
            case .wanted(let time) where turn.memory.awaitsLook(at: folder, wantedAt: time, now):
                return true
            case .done, .wanted, nil:
                guard let node = try turn.knownFolder(folder, transaction),
                    turn.memory.listings.troubles.hopeless(node) == nil
                else {
                    // Should it be there all the same, both stay.
                    try transaction.deleteSent(id)
                    continue
                }
                turn.remember { $0.wantLook(at: folder, now) }
                turn.listAgain(folder, after: .zero)
                return true
            }
        }
        return false
    }

    /// What is there now may be what was sent: its content will tell.
    private static func isInQuestion(
        _ sent: SentChange, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let item = try transaction.knownItem(in: sent.parent, named: sent.name),
            try transaction.synced(item.identifier) == nil
        else { return false }
        return try Telling.mayBeRemoved(item, turn, transaction)
    }

    /// A folder that was to be made under another name, without an answer, and is another item now. Whether it
    /// was made shows when that is listed; later it is what others have made under the name.
    static func lookForLeft(
        by entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard entry.identifier != nil, try transaction.hasSent() else { return }
        let now = turn.now.uptime
        for (_, sent) in try transaction.creationsSent(for: entry.id) where sent.kind == .folder {
            let folder = sent.parent
            if case .wanted(let time)? = turn.memory.questions.looks[folder],
                turn.memory.awaitsLook(at: folder, wantedAt: time, now)
            {
                continue
            }
            guard try turn.knownFolder(folder, transaction) != nil else { continue }
            turn.remember { $0.wantLook(at: folder, now) }
            turn.listAgain(folder, after: .zero)
        }
    }

    /// A listing has ended well: which of those it did not show were not made.
    static func forgetLeft(
        _ listing: Listing, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        // Of a folder that went meanwhile nothing was compared.
        guard !listing.hasLeftOut, try transaction.hasSent(),
            try turn.knownFolder(listing.identifier, transaction) == listing.folder
        else { return }
        let operations = turn.memory.operations
        for (id, sent) in try transaction.creationsSent(to: listing.identifier) where sent.kind == .folder {
            let place = ItemPlace(parent: sent.parent, name: sent.name)
            guard try transaction.entry(sent.entry)?.identifier != nil, !operations.isBusy(place),
                !operations.isTouched(place, since: listing.operationCount)
            else { continue }
            try transaction.deleteSent(id)
        }
    }

    /// A listing has ended well. What it left out may be what is looked for: the next one looks again.
    static func noteLook(_ listing: Listing, _ turn: inout Turn) {
        guard case .wanted(let time) = turn.memory.questions.looks[listing.identifier],
            listing.started >= time, !listing.hasLeftOut
        else { return }
        let now = turn.now.uptime
        turn.remember {
            $0.questions.looks[listing.identifier] = .done(at: now, began: listing.started)
        }
    }
}

extension Memory {
    /// The folder is to be looked at. Of many looks those that nobody waits for are forgotten.
    mutating func wantLook(at folder: ItemIdentifier, _ now: Duration) {
        if questions.looks.count >= QuestionMemory.countMax {
            let listed = Set(listings.running.values.map(\.identifier))
            questions.looks = questions.looks.filter { other, look in
                now - look.time < ListingMemory.silencePatience || listed.contains(other)
            }
        }
        questions.looks[folder] = .wanted(at: now)
    }

    /// Whether a look that was wanted is still to come. A large folder takes minutes to list:
    /// wanted anew meanwhile, its listing would have begun too early, and so would each after that.
    func awaitsLook(at folder: ItemIdentifier, wantedAt time: Duration, _ now: Duration) -> Bool {
        if now - time < FirstNames.lookPatience { return true }
        return listings.running.values.contains { listing in
            listing.identifier == folder && listing.started >= time
                && now - listing.heard < ListingMemory.silencePatience
        }
    }
}
