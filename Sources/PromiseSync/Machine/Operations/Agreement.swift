import PromiseCore
import PromiseIndex
import PromiseProvider

// What both sides agree on when an operation was answered.

extension Operation {
    /// What the provider was asked to keep.
    private var sentMetadata: Metadata? {
        switch work {
        case .create(let item, _, _): item.metadata
        case .modify(_, let changes, _, _): changes.metadata
        case .delete, .compare: nil
        }
    }

    /// The provider was told to change an item, and nothing of its rights.
    var tellsNoRights: Bool {
        guard case .modify(_, let changes, _, _) = work else { return false }
        return !changes.tellsRights
    }

    /// The provider was told another place, and nothing else.
    private var tellsNoMetadata: Bool {
        guard case .modify(_, let changes, _, _) = work else { return false }
        return changes.metadata == nil
    }

    /// The answer shows what others did to rights or time.
    func showsNews(_ item: Item, than agreed: Item) -> Bool {
        tellsNoRights && agreed.hasOtherRights(than: item)
            || tellsNoMetadata && agreed.hasOtherTime(than: item)
    }

    /// What both sides agree on when the provider answers with `item`. Who only moved an item has
    /// not seen the content that somebody else gave it at the same moment, and who only edited it
    /// has not followed it where others moved it. `known` is what was agreed on before.
    func agreed(on item: Item, known: Item?, keepsTimes: Bool) -> Item {
        var agreed = item
        if let sent = sentMetadata { agreed.metadata = sent }
        // What others did to its rights, or to its time, is seen by this answer only.
        if tellsNoRights, let known { agreed.takeRights(of: known) }
        if tellsNoMetadata, let known, item.kind != .folder { agreed.takeTime(of: known) }
        if case .modify(_, let changes, _, _) = work, changes.place == nil, let known {
            (agreed.parent, agreed.name) = (known.parent, known.name)
        }
        if case .modify(_, let changes, nil, let base) = work, changes.target == nil,
            item.kind != .folder
        {
            let isOurs = isTimeOurs(item, known: known, keepsTimes: keepsTimes)
            if !isOurs { agreed.version = base }
        }
        return agreed
    }

    /// Where versions are made of times, as in a folder, a time that was set makes another version
    /// of the same content. Any edit would have made yet another time of it.
    private func isTimeOurs(_ item: Item, known: Item?, keepsTimes: Bool) -> Bool {
        guard let known, let sent = sentMetadata?.modificationTime,
            sent != known.metadata.modificationTime
        else { return false }
        guard item.size == known.size, item.kind == known.kind else { return false }
        let time = item.metadata.modificationTime
        // FAT has steps of two seconds.
        return time == sent
            || (!keepsTimes && time < sent && sent.nanoseconds(since: time) < 2_000_000_000)
    }
}

enum Agreement {
    /// The provider has what was sent, whose answer did not come. What was told neither of rights
    /// nor of time has not changed them: those that others gave are news.
    static func reach(
        _ item: Item, _ sent: SentChange, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var agreed = item
        let known = try transaction.synced(item.identifier)?.item
        if !sent.tellsRights, let known { agreed.takeRights(of: known) }
        let time = known?.metadata.modificationTime
        if sent.base != nil, sent.modificationTime == time, item.kind != .folder, let known {
            agreed.takeTime(of: known)
        }
        try transaction.setSynced(SyncedItem(item: agreed, edits: sent.edits))
        let isNews = agreed.hasOtherRights(than: item) || agreed.hasOtherTime(than: item)
        try transaction.setRemote(item.identifier, isNews ? .present(item) : nil)
        if isNews { turn.noteDivergence() }
    }

    /// The content is the same on both sides, under a version that is new here: a chmod makes one
    /// where versions are made of what is known of a file. Rights that others gave with it are
    /// news, which is followed next. `isTold`: it was sent from here with its rights.
    static func reachContent(
        of item: Item, edits: UInt64, isTold: Bool, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        let known = try transaction.synced(item.identifier)?.item
        try turn.agreeOnContent(of: item, edits: edits, transaction)
        guard !isTold, let known, known.version != .unagreed, known.hasOtherRights(than: item),
            var agreed = try transaction.synced(item.identifier)
        else { return }
        agreed.item.takeRights(of: known)
        try transaction.setSynced(agreed)
        try transaction.setRemote(item.identifier, .present(item))
        turn.noteDivergence()
    }
}

extension ItemChanges {
    /// Mode and owners are given, and not only named beside the time that is.
    var tellsRights: Bool { metadata != nil && !keepsRights }
}

extension Item {
    mutating func takeRights(of other: Item) {
        let rights = other.metadata
        (metadata.mode, metadata.owner, metadata.group) = (rights.mode, rights.owner, rights.group)
    }

    mutating func takeTime(of other: Item) {
        metadata.modificationTime = other.metadata.modificationTime
    }

    /// That of a folder comes of what is in it.
    func hasOtherTime(than other: Item) -> Bool {
        kind != .folder && metadata.modificationTime != other.metadata.modificationTime
    }

    func hasOtherRights(than other: Item) -> Bool {
        let (ours, theirs) = (metadata, other.metadata)
        if ours.owner != theirs.owner || ours.group != theirs.group { return true }
        return kind != .link && ours.mode != theirs.mode
    }
}
