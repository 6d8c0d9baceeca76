import PromiseCore
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
    var tellsNoMetadata: Bool {
        guard case .modify(_, let changes, _, _) = work else { return false }
        return changes.metadata == nil
    }

    /// What both sides agree on when the provider answers with `item`. Who only moved an item has
    /// not seen the content that somebody else gave it at the same moment, and who only edited it
    /// has not followed it where others moved it. `known` is what was agreed on before.
    func agreed(on item: Item, known: Item?, keepsTimes: Bool) -> Item {
        var agreed = item
        if let sent = sentMetadata {
            agreed.metadata = sent
        } else if tellsNoMetadata, let known {
            // What others did to its rights is seen by this answer only.
            let rights = known.metadata
            (agreed.metadata.mode, agreed.metadata.owner, agreed.metadata.group) = (
                rights.mode, rights.owner, rights.group
            )
        }
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

extension Item {
    func hasOtherRights(than other: Item) -> Bool {
        let (ours, theirs) = (metadata, other.metadata)
        if ours.owner != theirs.owner || ours.group != theirs.group { return true }
        return kind != .link && ours.mode != theirs.mode
    }
}
