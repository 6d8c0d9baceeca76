import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// What is told of an item that the provider has: new content, another place, other metadata.
extension Telling {
    static func prepareChange(
        _ entry: Entry, _ node: Node, _ synced: Item, content hasContent: Bool, place: Bool,
        metadata: Bool, _ pending: Pending,
        _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Prepared {
        if try turn.isLost(synced, transaction) {
            if let folder = try BlockedWork.folderBeingMade(entry.parent, transaction) {
                BlockedWork.note(pending.subject, on: folder, &turn)
                return .later(.seconds(5), .folderUnmade)
            }
            try Tree.keepWhatIsHere(entry, &turn, transaction)
            return try transaction.entry(entry.id) == nil ? .done : .later(.zero, .again)
        }
        guard let reference = try turn.reference(to: synced.identifier, transaction) else {
            return .later(.seconds(1), .noPath)
        }
        var changes = ItemChanges()
        var places: [ItemPlace] =
            synced.parent.map { [ItemPlace(parent: $0, name: synced.name)] } ?? []
        var (hasContent, metadata) = (hasContent, metadata)
        if place {
            switch try goal(of: entry, synced, pending, &turn, transaction) {
            case .later(let delay, let obstacle): return .later(delay, obstacle)
            case .goal(let target, let folder, let isAside):
                if isAside { (hasContent, metadata) = (false, false) }
                changes.place = (folder, target.name)
                places.append(target)
            }
        }
        if metadata, !place, try waitsForChildren(node, synced, transaction) { return .later(childrenDelay, .childrenFirst) }
        if metadata || hasContent {
            changes.metadata = Metadata(node)
            // Others may have given it other rights, which content and time do not tell against.
            changes.keepsRights = !node.hasOtherRights(than: synced)
        }
        var source: UploadSource?
        if hasContent && node.kind == .link {
            changes.target = node.target
        } else if hasContent {
            if let wait = try Unrest.wait(for: node, pending, &turn, transaction) {
                // A move need not wait for the content.
                if !place, let problem = wait.problem { throw problem }
                guard place else { return .later(wait.delay, .content) }
                changes.metadata = nil
            } else if turn.world.observer.keepsLastCopies {
                return .later(blockedDelay, .lastCopy)
            } else {
                source = try UploadSource(
                    turn.world.content, node: node.id, generation: node.generation,
                    isWrittenTo: node.isOpenForWriting)
            }
        }
        let draft = Draft(changes: changes, source: source, places: places)
        return .start(
            try operation(
                draft, kind: hasContent ? .upload : place ? .move : .metadata, entry, node, synced,
                reference, &turn, transaction))
    }

    /// A folder that waits for what is in it is looked at again after this long.
    private static let childrenDelay = Duration.milliseconds(500)

    /// What is made or removed in a folder changes its time, and a mode that forbids that is told after it.
    private static func waitsForChildren(
        _ node: Node, _ synced: Item, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard node.kind == .folder else { return false }
        let forbids = node.mode & 0o300 != 0o300
        let hasTime = try transaction.synced(synced.identifier)?.edits != node.edits
        guard forbids || hasTime else { return false }
        return try PendingInFolder.exists(node.id, synced.identifier, transaction)
    }

    /// What is to be changed.
    private struct Draft {
        var changes: ItemChanges
        var source: UploadSource?
        /// Where the item is and, when it moves, where it goes.
        var places: [ItemPlace]
    }

    /// With what is to be known again should its answer be lost.
    private static func operation(
        _ draft: Draft, kind: PendingKind, _ entry: Entry, _ node: Node, _ synced: Item,
        _ reference: ItemReference, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Operation {
        let agreedEdits = try transaction.synced(synced.identifier)?.edits ?? node.edits
        let (changes, source) = (draft.changes, draft.source)
        let isEdited = source != nil || changes.target != nil
        let sent = try draft.places.last.map { place throws(Failure) in
            try turn.storeSent(
                SentChange(
                    entry: entry.id, item: synced.identifier,
                    isMove: turn.facts.knowsByPlace && draft.places.count > 1, parent: place.parent,
                    name: place.name, kind: node.kind, edits: source == nil ? agreedEdits : node.edits,
                    size: source?.size ?? synced.size,
                    modificationTime: source != nil && node.durability == .doubtful
                        ? .unrecognizable : (changes.metadata ?? synced.metadata).modificationTime,
                    base: isEdited ? nil : synced.version, target: changes.target ?? synced.target,
                    tellsRights: changes.tellsRights),
                transaction)
        }
        return Operation(
            subject: .entry(entry.id),
            work: .modify(reference, changes, source, base: synced.version), kind: kind,
            identifier: synced.identifier, node: node.id,
            edits: source == nil && node.kind == .file ? agreedEdits : node.edits,
            places: draft.places, byteCount: source?.dataByteCount ?? 0, sent: sent)
    }

    private enum Goal {
        /// `isAside`: for a moment, as others are in the way.
        case goal(ItemPlace, in: ItemReference, isAside: Bool)
        case later(Duration, Decision.Obstacle)
    }

    /// Where a moved item goes next.
    private static func goal(
        of entry: Entry, _ synced: Item, _ pending: Pending, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Goal {
        let target: ItemPlace
        var isAside = false
        switch try route(of: entry, synced, &turn, transaction) {
        case .free(let place):
            target = AsideName.step(to: place, of: synced, after: pending.attempts, &turn)
            isAside = target.name != place.name
        case .circle(let aside):
            // It is out of the way already: another such name would only keep others from following it.
            if AsideName.isOne(synced.name), synced.parent == aside.parent {
                return .later(blockedDelay, .placeTaken)
            }
            (target, isAside) = (aside, true)
        case .taken: return .later(blockedDelay, .placeTaken)
        case .homeless:
            BlockedWork.note(pending.subject, on: entry.parent, &turn)
            return .later(.seconds(5), .folderUnmade)
        }
        // What is being made or moved there will be in the way, or has left before.
        if turn.memory.operations.isBusy(target) { return .later(blockedDelay, .operationAtPlace) }
        guard let folder = try turn.reference(to: target.parent, transaction) else {
            return .later(.seconds(1), .noPath)
        }
        if try turn.mayHaveGoneElsewhere(synced, than: target, transaction) {
            turn.askNow(for: synced.identifier)
            return .later(blockedDelay, .whereabouts)
        }
        return .goal(target, in: folder, isAside: isAside)
    }
}
