import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// What is told of a document that others have changed, too.
extension Telling {
    static func prepareConflict(
        _ entry: Entry, _ node: Node, _ item: Item, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        // After a crash our own upload may be what looks like somebody else's edit, and another version may
        // be the same content.
        if node.kind == .file, let reference = try turn.reference(to: item.identifier, transaction) {
            var source: UploadSource?
            if node.content == .whole {
                source = try UploadSource(
                    turn.world.content, node: node.id, generation: node.generation,
                    isWrittenTo: node.isOpenForWriting)
            }
            let isLike = source?.size == item.size
            let isKnown = try mayBeKnown(item, turn, transaction)
            let isAgreed = try source.map { source throws(Failure) in
                try hasAgreedSize(source.size, item.identifier, transaction)
            }
            let isLocalWanted = isLike || isAgreed ?? false
            if isLocalWanted || isKnown {
                return .start(
                    try comparison(
                        with: item, reference, isLocalWanted ? source : nil, .entry(entry.id), node,
                        &turn))
            }
        }
        if node.kind == .link, let target = node.target, item.target == target {
            try agreeOnTarget(entry, node, item, &turn, transaction)
            return .later(.zero, .again)
        }
        try Tree.keepBoth(entry, item, &turn, transaction)
        return try transaction.pending(.entry(entry.id)) == nil ? .done : .later(.zero, .again)
    }

    /// Both sides gave a link the same target: nothing is in conflict.
    private static func agreeOnTarget(
        _ entry: Entry, _ node: Node, _ item: Item, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        try OwnMoves.agree(on: item, transaction)
        // What was sent of a link is recognised by its target: this was not sent from here, and
        // what was is overwritten.
        try transaction.deleteSent(of: item.identifier, keepsMoves: true)
        try Agreement.reachContent(of: item, edits: node.edits, isTold: false, &turn, transaction)
        guard node.version != item.version else { return }
        var agreed = node
        agreed.version = item.version
        try transaction.update(agreed)
    }

    /// Whether a digest is known that may be that of the item's content.
    static func mayBeKnown(
        _ item: Item, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if try isTouched(item, turn, transaction) { return true }
        return try !turn.sentCandidates(of: item, transaction).isEmpty
    }

    /// Whether what the provider shows may be what was removed here, and not news: with another version of
    /// the same content, or with what was sent before.
    static func mayBeRemoved(
        _ item: Item, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if try transaction.entry(for: item.identifier) != nil { return false }
        if try transaction.synced(item.identifier) != nil {
            if try UnansweredRemovals.mayHaveMadeWay(for: item, turn, transaction) { return false }
            return try mayBeKnown(item, turn, transaction)
        }
        // Sent as a new item, and removed, replaced or renamed here before the answer.
        guard try transaction.hasSent() else { return false }
        for (_, sent) in try turn.sentCandidates(of: item, transaction) {
            guard let entry = try transaction.entry(sent.entry) else { return true }
            // It is, or will be, made under its new name.
            let parent = try turn.identifier(of: entry.parent, transaction)
            if sent.item == nil, parent != sent.parent || entry.name != sent.name { return true }
        }
        return false
    }

    /// Whether the item may have another version of the content that was agreed on.
    private static func isTouched(
        _ item: Item, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard item.kind == .file else { return false }
        return try hasAgreedSize(item.size, item.identifier, transaction)
    }

    /// Whether what is as large may be the content that was agreed on, whose digest is known.
    private static func hasAgreedSize(
        _ size: UInt64, _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let known = try transaction.fingerprint(of: identifier),
            let agreed = try transaction.synced(identifier)?.item
        else { return false }
        return known.version == agreed.version && known.size == size
    }

    static func comparison(
        with item: Item, _ reference: ItemReference, _ source: UploadSource?,
        _ subject: Pending.Subject, _ node: Node?, _ turn: inout Turn
    ) throws(Failure) -> Operation {
        let comparison = Comparison(
            reference: reference, version: item.version, size: item.size, source: source,
            scratch: SharedDescriptor(try turn.world.content.scratch()))
        return Operation(
            subject: subject, work: .compare(comparison), kind: .compare,
            identifier: item.identifier, node: node?.id, edits: node?.edits ?? 0, places: [],
            byteCount: item.size)
    }
}
