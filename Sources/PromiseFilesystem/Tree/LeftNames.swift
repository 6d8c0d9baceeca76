import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

/// The names that documents had here until they were renamed to names that stay on this machine,
/// as editors rename what they write anew, or removed: also of what the provider knows by another
/// name as yet.
///
/// **Threads.** Any; `state` is a leaf.
final class LeftNames: Sendable {
    private static let countMax = 10_000

    private let state = Mutex<[TreePlace: ItemIdentifier]>([:])

    /// False costs a look at each new name.
    var isEmpty: Bool { state.withLock { $0.isEmpty } }

    /// Called before it is committed: whoever asks looks whether it was.
    func note(_ entry: Entry) {
        guard let identifier = entry.identifier else { return }
        state.withLock { state in
            if state.count >= LeftNames.countMax { state = [:] }
            state[TreePlace(entry.name, in: entry.parent)] = identifier
        }
    }

    /// `entry` was removed. What both sides called the same is found without being noted.
    func note(removed entry: Entry, known: Item, in parent: ItemIdentifier?) {
        if known.name != entry.name || known.parent != parent { note(entry) }
    }

    /// What had this name here, or has it at the provider. It may be what it is no more.
    func item(
        named name: FileName, in folder: NodeID, _ parent: ItemIdentifier?,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> SyncedItem? {
        if let known = state.withLock({ $0[TreePlace(name, in: folder)] }),
            let item = try transaction.synced(known)
        {
            return item
        }
        guard let parent else { return nil }
        return try transaction.synced(in: parent, named: name)
    }
}
