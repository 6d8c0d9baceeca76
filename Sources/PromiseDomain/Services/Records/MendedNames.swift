import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync

/// What a repair of the index has changed that programs on the mount see. The kernel keeps names,
/// listings and attributes, and shows what was until it is told.
struct MendedNames {
    let filesystem: FileSystem
    let index: Index

    /// `changes`: what the repair has added to the feed.
    func show(_ changes: [Change]) {
        var tree: [TreeChange] = []
        for change in changes {
            // Of what is no name the kernel knows nothing.
            guard let name = change.name, FileName(name.bytes) != nil else { continue }
            let place = TreePlace(name, in: change.parent)
            switch change.kind {
            case .modified:
                filesystem.nodeChanged(change.node, content: false)
                tree.append(.modified(change.node, content: false))
            case .created, .moved:
                filesystem.entryChanged(in: change.parent, named: name)
                tree.append(.appeared(place))
            case .left:
                filesystem.entryChanged(in: change.parent, named: name)
            case .deleted:
                filesystem.entryChanged(in: change.parent, named: name)
                if let node = node(change.node) { tree.append(.gone(place, node)) }
            default: break
            }
        }
        // It has no name, so the feed says nothing of it.
        filesystem.nodeChanged(.root, content: false)
        filesystem.treeChanged(tree)
    }

    private func node(_ id: NodeID) -> Node? {
        let found = try? index.read { transaction throws(Failure) in try transaction.node(id) }
        return found ?? nil
    }
}
