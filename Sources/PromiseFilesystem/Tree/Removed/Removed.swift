import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What is left to do after a transaction that took a node's last name.
struct Removed {
    var node: Node
    /// No program has it open: its row is gone already.
    var isDeleted: Bool
    /// Its content stays in the store, as it can come back.
    var isKept = false
    /// Content files that gave way to it.
    var going: [(node: NodeID, generation: Generation)] = []

    /// After the commit: content goes, and the kernel's references to the node are answered from
    /// memory.
    func finish(in tree: FileSystem) {
        for file in going { tree.engine.remover.remove(file.node, file.generation) }
        guard isDeleted else { return }
        tree.references.withLock { $0.keep(node) }
        guard node.kind == .file else { return }
        tree.engine.hydrator.discard(node.id, because: Failure(.stale, "the file was removed"))
        guard node.content != .absent else { return }
        // What the kernel has registered of it goes either way.
        if isKept {
            tree.contentRemoved(node.id)
        } else {
            tree.engine.remover.remove(node.id, node.generation)
        }
    }
}
