import PromiseCore
import PromiseIndex

/// Rights and times that others gave to an item.
enum MetadataOfOthers {
    static func take(
        _ item: Item, _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        // Its content file is about to be given the time that tells of writes.
        try turn.world.observer.noteOpenWrites(of: entry.node, transaction)
        guard var node = try transaction.node(entry.node) else { return }
        let editedAt = node.modificationTime
        let known = try transaction.synced(item.identifier)
        let isEdited = known.map { $0.edits != node.edits } ?? false
        node.take(item, since: known?.item)
        // The time of an edit made here is the edit's, and one that others left alone may have been
        // given here.
        if isEdited || hasSameTime(item, known?.item) { node.modificationTime = editedAt }
        if node.isOpenForWriting, node.modificationTime != editedAt {
            try turn.world.observer.giveTime(toOpen: node)
        }
        node.changeTime = turn.now.time
        try transaction.update(node)
        try remindOfOtherNames(than: entry, turn, transaction)
        try turn.agree(on: item, edits: nil, transaction)
        try RightsOfBoth.remind(entry, of: item, turn, transaction)
        try transaction.record(.modified, node: node.id, parent: entry.parent, name: entry.name)
        turn.notices.noteModified(node.id, content: false)
    }

    /// A folder's time is changed by what is made in it, on each side at another moment.
    private static func hasSameTime(_ item: Item, _ known: Item?) -> Bool {
        item.kind != .folder && item.metadata.modificationTime == known?.metadata.modificationTime
    }

    /// Each name of a node is an item of its own at the provider, which knows nothing of links: what the node took from
    /// one of them is an edit of the others.
    private static func remindOfOtherNames(
        than entry: Entry, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for other in try transaction.entries(of: entry.node)
        where other.id != entry.id && !other.isExcluded {
            try turn.remind(.entry(other.id), transaction)
        }
    }
}
