import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

/// The names that documents had here until they were renamed or removed, as programs do with what
/// they write anew: also of what the provider knows by another name as yet.
///
/// **Threads.** Any; `state` is a leaf.
final class LeftNames: Sendable {
    private static let countMax = 10_000

    /// For so long what a program does to a document and to its new version is one save of it.
    private static let savingSeconds: Int64 = 600

    private struct State {
        /// Of what was renamed to a name that stays on this machine, or removed.
        var documents: [TreePlace: Document] = [:]
        /// Where what was renamed to any other name was before.
        var moved: [EntryID: (place: TreePlace, time: Timestamp)] = [:]
        /// What documents were that are these nodes now, until whoever made them so has told.
        var former: [NodeID: Entry] = [:]
    }

    private struct Document {
        var entry: EntryID
        /// Nil of what the provider did not have.
        var item: ItemIdentifier?
    }
    private let state = Mutex(State())

    static func isRecent(_ time: Timestamp, at now: Timestamp) -> Bool {
        let age = now.nanoseconds(since: time)
        return age >= 0 && age < savingSeconds * 1_000_000_000
    }

    /// False costs a look at each new name.
    var isEmpty: Bool { state.withLock { $0.documents.isEmpty } }

    /// Called before it is committed: whoever asks looks whether it was.
    func note(_ entry: Entry) {
        let document = Document(entry: entry.id, item: entry.identifier)
        state.withLock { state in
            if state.documents.count >= LeftNames.countMax { state.documents = [:] }
            state.documents[TreePlace(entry.name, in: entry.parent)] = document
        }
    }

    /// `entry` is what it was before it was renamed. Folders are no documents that are saved so.
    func note(moved entry: Entry, _ kind: NodeKind, at now: Timestamp) {
        guard kind != .folder else { return }
        state.withLock { state in
            if state.moved.count >= LeftNames.countMax { state.moved = [:] }
            state.moved[entry.id] = (TreePlace(entry.name, in: entry.parent), now)
        }
    }

    /// Where an item was here before its last move, if that was a moment ago.
    func place(of entry: EntryID, at now: Timestamp) -> TreePlace? {
        guard let moved = state.withLock({ $0.moved[entry] }), LeftNames.isRecent(moved.time, at: now)
        else { return nil }
        return moved.place
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
        if let known = state.withLock({ $0.documents[TreePlace(name, in: folder)] })?.item,
            let item = try transaction.synced(known)
        {
            return item
        }
        guard let parent else { return nil }
        return try transaction.synced(in: parent, named: name)
    }

    /// What had this name here, and that the provider has never had.
    func unsent(
        named name: FileName, in folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        guard let known = state.withLock({ $0.documents[TreePlace(name, in: folder)] }), known.item == nil,
            let entry = try transaction.entry(known.entry), entry.identifier == nil
        else { return nil }
        return entry
    }

    /// A document is this node now. Called before it is committed.
    func note(_ former: Entry, isNow node: NodeID) {
        state.withLock { state in
            if state.former.count >= LeftNames.countMax { state.former = [:] }
            state.former[node] = former
        }
    }

    /// What the document was that is this node, once.
    func takeFormer(of node: NodeID) -> Entry? {
        state.withLock { $0.former.isEmpty ? nil : $0.former.removeValue(forKey: node) }
    }
}
