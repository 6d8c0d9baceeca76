import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

// Steps that take content away or put other content in its place.

extension Tree {
    /// The provider has a new version and nothing was edited here: what is shown becomes a
    /// placeholder of it.
    ///
    /// A node that a program has open, or that has other names, stays as it is; the name gets a new
    /// node.
    static func replaceContent(
        of entry: Entry, with item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let node = try transaction.node(entry.node) else { return }
        let known = try transaction.synced(item.identifier)?.item
        if node.kind == .link, node.linkCount == 1 {
            var link = node
            link.target = item.target
            link.size = item.size
            link.version = item.version
            link.take(item, since: known)
            try transaction.update(link)
            turn.notices.noteReplaced(entry, node)
        } else if isSeen(node, isOnlyPromised: try transaction.isOnlyPromised(node, by: entry), turn) {
            try giveNewNode(to: entry, for: item, since: known, &turn, transaction)
        } else {
            var replaced = node
            // Perhaps the index does not know yet that its content is on its way.
            turn.notices.startedAgain.append((node.id, node.generation))
            if node.content != .absent {
                turn.notices.removedContent.append((node.id, node.generation))
                try transaction.setRanges(of: node.id, to: ByteRangeSet())
                try transaction.setHoles(of: node.id, to: ByteRangeSet())
            }
            replaced.generation = node.generation.next
            replaced.content = .absent
            replaced.localBytes = 0
            replaced.size = item.size
            replaced.version = item.version
            replaced.take(item, since: known)
            replaced.changeTime = turn.now.time
            try transaction.update(replaced)
            turn.notices.noteModified(node.id, content: true)
            if node.pin == .pinned { turn.lookForPinned() }
        }
        // Whatever node the name stands for now has exactly the provider's content.
        let document = try transaction.entry(entry.id) ?? entry
        let edits = try transaction.node(document.node)?.edits ?? 0
        try turn.agreeOnContent(of: item, edits: edits, transaction)
        try RightsOfBoth.remind(document, of: item, turn, transaction)
        // The search of names and those who follow the journal have to know the new node.
        if document.node != entry.node {
            return try transaction.recordReplacement(of: entry.node, by: document)
        }
        try transaction.record(.modified, node: entry.node, parent: entry.parent, name: entry.name)
    }

    /// Whether somebody may have seen the content, or has another name for it. What the index does not know
    /// to be here is only on its way, and nobody has read of it or written to it.
    private static func isSeen(_ node: Node, isOnlyPromised: Bool, _ turn: borrowing Turn) -> Bool {
        if node.linkCount > 1 && !isOnlyPromised || node.isOpenForWriting { return true }
        return node.content != .absent && turn.world.observer.isOpen(node.id)
    }

    /// The old node keeps its content for whoever has it open or linked.
    private static func giveNewNode(
        to entry: Entry, for item: Item, since known: Item?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let old = try transaction.node(entry.node) else { return }
        var fresh = Node(placeholderFor: item, seenAt: turn.now.time)
        fresh.keepRights(of: old, under: item, since: known)
        fresh.pin = old.pin
        fresh.succeed(old.edits)
        fresh = try transaction.insert(fresh)
        var changed = entry
        changed.node = fresh.id
        try transaction.update(changed)
        try release(old, of: entry, replacedBy: item.identifier, &turn, transaction)
        try NamesWithoutItem.end(of: old.id, isReplaced: true, &turn, transaction)
        turn.notices.replaced.append(entry)
        turn.notices.noteReplaced(entry, old)
        if fresh.pin == .pinned { turn.lookForPinned() }
    }

    /// A node loses one name. Without names it lives on only while it is open: the filesystem
    /// deletes it at the last close, or gives it a name beside `entry` when it was written to
    /// meanwhile.
    static func release(
        _ node: Node, of entry: Entry, replacedBy item: ItemIdentifier?, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        var node = node
        if node.kind == .folder || node.linkCount <= 1 {
            if node.kind != .folder && turn.world.observer.isOpen(node.id) {
                node.linkCount = 0
                try transaction.update(node)
                // Whoever waits for the first byte of it would wait for nothing.
                if node.content == .absent { turn.notices.discarded.append(node.id) }
                guard node.kind == .file else { return }
                return try transaction.setDisplaced(
                    DisplacedNode(
                        node: node.id, parent: entry.parent, name: entry.name, edits: node.edits,
                        conflictsWith: item))
            }
            if node.content != .absent {
                turn.notices.removedContent.append((node.id, node.generation))
            }
            turn.notices.discarded.append(node.id)
            try transaction.delete(node.id)
        } else {
            node.linkCount -= 1
            node.changeTime = turn.now.time
            try node.keepVersion(transaction)
            try transaction.update(node)
            turn.notices.nodes.append((node.id, false))
        }
    }

    static func keepAsNew(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard !entry.isExcluded else { return }
        var entry = entry
        if let identifier = entry.identifier {
            entry.identifier = nil
            try transaction.update(entry)
            try forget(identifier, of: entry, &turn, transaction)
        }
        try turn.remind(.entry(entry.id), transaction)
        try keepPieces(of: entry, &turn, transaction)
    }

    /// What was moved here to a folder that others have removed is at the provider where it was,
    /// and shows there again.
    static func forget(
        _ identifier: ItemIdentifier, of entry: Entry, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        if let parent = try turn.known(identifier, transaction)?.parent,
            try turn.identifier(of: entry.parent, transaction) != parent
        {
            turn.listAgain(parent)
        }
        try turn.forgetItem(identifier, transaction)
    }

    /// Edited on both sides: the provider's version keeps the name and the identifier, ours gets a
    /// name beside it and becomes a new item. Programs that have ours open keep it.
    static func keepBoth(
        _ entry: Entry, _ item: Item, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let name = try freeConflictName(for: entry.name, in: entry.parent, &turn, transaction)
        let base = try transaction.synced(item.identifier)
        var fresh = Node(placeholderFor: item, seenAt: turn.now.time)
        if let old = try transaction.node(entry.node) {
            fresh.pin = old.pin
            fresh.succeed(old.edits)
            fresh.keepRights(of: old, under: item, since: base?.item)
        }
        fresh = try transaction.insert(fresh)
        if turn.facts.keepsTimes, !item.isGuess, var own = try transaction.node(entry.node) {
            own.allowNoMore(than: Metadata(fresh))
            try transaction.update(own)
            turn.notices.nodes.append((own.id, false))
        }
        var theirs = entry
        theirs.node = fresh.id
        try transaction.update(theirs)
        let ours = try transaction.insertEntry(
            in: entry.parent, named: name, node: entry.node, identifier: nil,
            conflictsWith: item.identifier)
        try turn.agreeOnContent(of: item, edits: fresh.edits, transaction)
        // It is not what was sent there. What looks like that later is ours by its new name.
        try transaction.deleteSent(for: entry.id)
        // Where it was moved here is still to be told.
        if plan(try turn.observation(of: item.identifier, theirs, transaction)) == .nothing {
            try transaction.deletePending(.entry(entry.id))
        }
        // The rights that it may have no more of are those of its other names, too.
        try NodeNames.remind(entry.node, turn, transaction)
        try transaction.rebasePieces(of: entry.node, from: base)
        try keepPieces(of: ours, &turn, transaction)
        try transaction.record(.created, node: entry.node, parent: entry.parent, name: name)
        try transaction.recordReplacement(of: entry.node, by: theirs)
        try transaction.recordVersion(.versionGained, ours)
        // Claims and presenters are of the document, which has kept its name.
        turn.notices.replaced.append(entry)
        turn.notices.noteMoved(entry, to: ours)
        turn.notices.noteAppeared(entry.name, in: entry.parent)
        turn.log(
            .notice, "kept both versions of a file edited on both sides",
            reason: "\(item.identifier)")
    }
}
