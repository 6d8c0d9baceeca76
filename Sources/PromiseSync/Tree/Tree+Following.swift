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
            let entry = try transaction.entry(for: identifier)
            let observation = try turn.observation(of: identifier, entry, transaction)
            if case .present(let item)? = observation.remote, let synced = observation.synced,
                item.kind != synced.kind
            {
                // An identifier that stands for another kind of thing stands for another item,
                // which a listing shows.
                try transaction.setRemote(identifier, .deleted)
                if let parent = item.parent { turn.listAgain(parent, after: .seconds(1)) }
                continue
            }
            let step = plan(observation)
            if let entry, let change = step.change,
                try !turn.world.observer.mayFollow(change, of: entry.node, transaction)
            {
                return false
            }
            switch step {
            case .nothing:
                return true
            case .settle(let item):
                try turn.agree(on: item, edits: nil, transaction)
            case .forget:
                try turn.forgetItem(identifier, transaction)
                try transaction.deletePending(.deletion(identifier))
            case .insertLocal(let item):
                return try insertLocal(item, depth: depth, &turn, transaction)
            case .removeLocal:
                guard let entry, try !isUnderWay(below: entry, &turn, transaction) else {
                    return false
                }
                try removeLocal(entry, depth: depth, &turn, transaction)
            case .moveLocal(let item):
                guard let entry, try moveLocal(entry, to: item, depth: depth, &turn, transaction)
                else { return false }
            case .replaceContent(let item):
                guard let entry else { return false }
                try replaceContent(of: entry, with: item, &turn, transaction)
            case .updateMetadata(let item):
                guard let entry else { return false }
                try updateMetadata(of: entry, from: item, &turn, transaction)
            case .detach:
                guard let entry else { return false }
                try detach(entry, &turn, transaction)
                return true
            case .keepBoth, .create, .push:
                guard let entry else { return false }
                try turn.remind(.entry(entry.id), transaction)
                return true
            case .deleteRemote:
                try turn.remind(.deletion(identifier), transaction)
                return true
            }
        }
        return false
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
