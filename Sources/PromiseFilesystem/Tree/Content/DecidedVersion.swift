package import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

// What a decision about the versions of a document is made on, and what is written after it.

extension Node {
    /// Tells one content from what it is after a program wrote to it, also while the program has it open. Opaque.
    package func state(in store: ContentStore) throws(Failure) -> String {
        var (size, time) = (self.size, modificationTime)
        if kind == .file, content == .whole, let status = try store.status(id, generation) {
            (size, time) = (status.size, status.modificationTime)
        }
        return "\(id)-\(edits)-\(size)-\(time.rawValue)"
    }
}

extension Transaction {
    /// What is written to a file that has lost its name to a decision gets a name again at the last close.
    func keepWrites(
        to removed: Removed?, under entry: Entry, of document: ItemIdentifier?
    ) throws(Failure) {
        guard let removed, !removed.isDeleted, removed.node.kind == .file else { return }
        try setDisplaced(
            DisplacedNode(
                node: removed.node.id, parent: entry.parent, name: entry.name, edits: removed.node.edits,
                conflictsWith: document))
    }
}
