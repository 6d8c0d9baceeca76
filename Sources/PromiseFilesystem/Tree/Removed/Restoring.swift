import Logging
import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSync
import PromiseSystem

/// Brings back what was removed here.
package struct Restoring: Sendable {
    private let tree: FileSystem

    package init(_ tree: FileSystem) { self.tree = tree }

    /// Makes it a new item under this name, with the content, mode, owner, time and attributes that
    /// it had. Called by the daemon itself. False when the folder has to be listed first. Throws
    /// `.exists` when the name is taken, `.gone` when it is not kept any more, `.busy` when a
    /// program still has the removed file open.
    package func restore(_ item: RemovedItem, as name: FileName, in parent: NodeID) throws(Failure)
        -> Bool
    {
        guard item.isKept else {
            throw Failure(
                .gone,
                "its content was not on this machine when it was removed, and is not kept here: "
                    + "a provider that keeps what was deleted may have it")
        }
        var made: Node?
        do throws(Failure) {
            try tree.index.write { transaction throws(Failure) in
                made = nil
                let folder = try tree.folder(parent, transaction)
                guard folder.isPopulated else { return }
                guard let known = try RemovedRows.item(item.id, transaction),
                    known.node == item.node
                else {
                    throw Failure(
                        .gone, "it is not kept any more: it came back, or had to make room")
                }
                made = try bringBack(known, as: name, in: folder, transaction)
            }
        } catch {
            // Only a name of the content was made, which belongs to nothing.
            if let made, made.kind == .file { tree.engine.remover.remove(made.id, made.generation) }
            throw error
        }
        guard let made else { return false }
        tree.succession.follow(to: made.id)
        if item.kind == .file { removeOldName(of: item, of: made) }
        tree.entryChanged(in: parent, named: name)
        tree.treeChanged([.appeared(TreePlace(name, in: parent))])
        for attribute in item.attributes { tree.attributeNews.note(attribute.name) }
        tree.engine.notePending()
        return true
    }

    /// The index is on the disk sooner than a name that no fsync(2) waited for: after a power cut
    /// in between, the content would have neither. A disk that fails keeps both.
    private func removeOldName(of item: RemovedItem, of made: Node) {
        do throws(Failure) {
            try tree.content.settleShared(made.id, made.generation)
            tree.engine.remover.remove(item.node, item.generation)
        } catch {
            tree.logger.error(
                "the content of a restored file is kept twice",
                metadata: ["reason": "\(error.message)"])
        }
    }

    private func bringBack(
        _ item: RemovedItem, as name: FileName, in folder: Node,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Node {
        var fresh = Node(
            id: .root, kind: item.kind, mode: item.mode, owner: item.owner, group: item.group,
            size: item.size,
            time: tree.clock.now(), content: item.kind == .file ? .whole : .absent)
        // No draft: should it be removed again at once, it is kept again.
        fresh.birthTime = fresh.birthTime.advanced(by: .zero - tree.engine.removed.draftAge)
        fresh.target = item.target
        fresh.isPopulated = item.kind == .folder
        let caller = Caller(user: item.owner, group: item.group, process: 0)
        var node = try tree.enter(fresh, name, in: folder, caller, transaction)
        // As it was, whatever its folder hands on.
        (node.mode, node.group, node.modificationTime) = (
            item.mode, item.group, item.modificationTime
        )
        node.localBytes = item.localBytes
        if item.isDurable { node.durability = .whole }
        try transaction.update(node)
        try tree.chmodAccessControl(of: node, transaction)
        for attribute in item.attributes {
            if FsyncReach.isName(attribute.name) {
                try tree.fsyncs.reach.note(attribute.value, of: node, transaction)
            }
            try transaction.setAttribute(attribute.name, of: node.id, to: attribute.value)
        }
        try RemovedRows.delete(item, transaction)
        if item.kind == .file { try shareContent(of: item, with: node, transaction) }
        return node
    }

    /// Nothing is copied: the content file has two names until the index has forgotten the first.
    private func shareContent(
        of item: RemovedItem, with node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard try transaction.node(item.node) == nil else {
            throw Failure(
                .busy,
                "a program has the removed file open; it can come back when that has closed it")
        }
        guard let status = try tree.content.status(item.node, item.generation),
            status.size == item.size
        else {
            throw Failure(.corrupted, "its content is not what was kept: run 'promisefs verify'")
        }
        try tree.content.share(item.node, item.generation, with: node.id, node.generation)
    }
}
