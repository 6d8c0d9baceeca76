import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// Making the local tree follow what the provider says. Everything here happens within one
/// transaction; what programs are to be told of it is collected in the turn.
enum Tree {
    /// Plans and carries out local steps until none is left; true unless the item must wait.
    static func follow(
        _ identifier: ItemIdentifier, depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth < 64 else { return false }
        for _ in 0..<16 {
            switch try followOnce(identifier, depth: depth, &turn, transaction) {
            case .again: continue
            case .done: return true
            case .waits: return false
            }
        }
        return false
    }

    private enum Progress {
        case again, done, waits
    }

    private static func followOnce(
        _ identifier: ItemIdentifier, depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Progress {
        let entry = try transaction.entry(for: identifier)
        let observation = try turn.observation(of: identifier, entry, transaction)
        if case .present(let item)? = observation.remote, let synced = observation.synced,
            item.kind != synced.kind
        {
            // An identifier that stands for another kind of thing stands for another item, which a
            // listing shows.
            try transaction.setRemote(identifier, .deleted)
            if let parent = item.parent { turn.listAgain(parent, after: .seconds(1)) }
            return .again
        }
        if case .present(let item)? = observation.remote, let aside = AsideName(item.name),
            observation.synced?.name != item.name,
            observation.local != nil || observation.synced == nil
        {
            if MovesOfOthers.isAwaited(item, &turn) { return .waits }
            return try MovesOfOthers.finish(item, aside, entry, &turn, transaction) ? .again : .done
        }
        let step = turn.decide(identifier, entry, observation, .follow)
        if let entry, let change = step.change,
            try !turn.world.observer.mayFollow(change, of: entry.node, transaction)
        {
            turn.note(.claim)
            return .waits
        }
        return try take(step, identifier, entry, depth: depth, &turn, transaction)
    }

    private static func take(
        _ step: Step, _ identifier: ItemIdentifier, _ entry: Entry?, depth: Int,
        _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Progress {
        switch step {
        case .nothing: return .done
        case .settle(let item): try turn.agree(on: item, edits: nil, transaction)
        case .forget:
            turn.remember { $0.questions.removalsUnanswered[identifier] = nil }
            try turn.forgetItem(identifier, transaction)
            try transaction.deletePending(.deletion(identifier))
            return .done
        case .insertLocal(let item):
            return try insertUnlessKnown(item, depth: depth, &turn, transaction) ? .done : .waits
        case .deleteRemote:
            try turn.remind(.deletion(identifier), transaction)
            return .done
        default:
            guard let entry else { return .waits }
            return try take(step, entry, depth: depth, &turn, transaction)
        }
        return .again
    }

    private static func take(
        _ step: Step, _ entry: Entry, depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Progress {
        if case .replaceContent = step { try GoneContent.note(entry, &turn, transaction) }
        switch step {
        case .removeLocal:
            if try isUnderWay(below: entry, &turn, transaction) { return .waits }
            if try isReplaced(entry, depth: depth, &turn, transaction) { return .again }
            try removeLocal(entry, depth: depth, &turn, transaction)
            try FolderTimes.lookAfterChange(in: entry.parent, &turn, transaction)
        case .moveLocal(let item):
            if try !moveLocal(entry, to: item, depth: depth, &turn, transaction) { return .waits }
        case .replaceContent(let item):
            try replaceContent(of: entry, with: item, &turn, transaction)
        case .updateMetadata(let item):
            try MetadataOfOthers.take(item, entry, &turn, transaction)
        case .takeTime(let item):
            if try !FolderTimes.take(item, entry, &turn, transaction) { return .done }
        case .detach:
            try detach(entry, &turn, transaction)
            return .done
        case .keepBoth, .create, .push:
            try turn.remind(.entry(entry.id), transaction)
            return .done
        case .nothing, .settle, .forget, .insertLocal, .deleteRemote:
            preconditionFailure("the step \(step) is of no entry")
        }
        return .again
    }
}

extension Tree {
    /// Others have put something else in the place of what is gone: that comes first, so that the name is
    /// never missing between the two.
    private static func isReplaced(
        _ entry: Entry, depth: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth == 0, let parent = try turn.identifier(of: entry.parent, transaction),
            let other = try transaction.knownItem(in: parent, named: entry.name),
            other.identifier != entry.identifier,
            case .present? = try transaction.remote(other.identifier)
        else { return false }
        _ = try follow(other.identifier, depth: depth + 1, &turn, transaction)
        return try transaction.entry(entry.id)?.identifier != entry.identifier
    }

    /// What was removed here and has another version there may be what it was, or what was sent: its content is looked at
    /// first.
    private static func insertUnlessKnown(
        _ item: Item, depth: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard try Telling.mayBeRemoved(item, turn, transaction) else {
            return try insertLocal(item, depth: depth, &turn, transaction)
        }
        try turn.remind(.deletion(item.identifier), transaction)
        return true
    }
}

extension Step {
    /// What it does to an item that is shown here, if others have to know before.
    fileprivate var change: RemoteChange? {
        switch self {
        case .replaceContent: .replaced
        case .moveLocal: .moved
        case .removeLocal: .removed
        default: nil
        }
    }
}
