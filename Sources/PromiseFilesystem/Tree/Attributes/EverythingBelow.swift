import Logging
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What is done to a folder with everything below it, at once and without anybody waiting for it.
/// No recursion: programs nest folders deeper than any stack. Blocking.
struct EverythingBelow: Sendable {
    let tree: FileSystem

    /// What is not known yet is listed first when it is to be kept here.
    func setPin(_ pin: Pin, below folder: NodeID) {
        forEachFolder(from: folder, "a pin could not be set") { folder throws(Failure) in
            let (node, children): (Node?, [Entry]) = try tree.index.read {
                transaction throws(Failure) in
                (try transaction.node(folder), try transaction.children(of: folder))
            }
            guard let node, node.kind == .folder else { return [] }
            guard node.isPopulated else {
                if pin == .pinned {
                    tree.engine.list(folder) { _ in
                        tree.workers.submit { setPin(pin, below: folder) }
                    }
                }
                return []
            }
            for child in children { try tree.setPin(pin, of: child.node) }
            return children.map(\.node)
        }
    }

    /// Folders that are not known yet are listed first.
    func fetch(below folder: NodeID) {
        forEachFolder(from: folder, "a folder was not fetched") { folder throws(Failure) in
            let (isPopulated, children) = try contents(of: folder)
            guard isPopulated else {
                tree.engine.list(folder) { result in
                    guard case .success = result else { return }
                    tree.workers.submit { fetch(below: folder) }
                }
                return []
            }
            let missing = children.filter { $0.kind == .file && $0.content != .whole }
            tree.engine.fetchInBackground(missing.map(\.id))
            return children.filter { $0.kind == .folder }.map(\.id)
        }
    }

    /// All that may go: what is open, pinned or not sent yet stays.
    func evict(below folder: NodeID) {
        forEachFolder(from: folder, "a folder was not evicted") { folder throws(Failure) in
            let children = try contents(of: folder).children
            for child in children where child.kind != .folder {
                _ = try tree.engine.evict(child.id)
            }
            return children.filter { $0.kind == .folder }.map(\.id)
        }
    }

    /// `visit` returns what is to be visited below; what fails keeps no other from it.
    private func forEachFolder(
        from folder: NodeID, _ trouble: Logger.Message,
        _ visit: (NodeID) throws(Failure) -> [NodeID]
    ) {
        var waiting = [folder]
        while let next = waiting.popLast() {
            do throws(Failure) {
                waiting += try visit(next)
            } catch {
                tree.logger.warning(
                    trouble, metadata: ["node": "\(next)", "reason": "\(error.message)"])
            }
        }
    }

    private func contents(
        of folder: NodeID
    ) throws(Failure) -> (isPopulated: Bool, children: [Node]) {
        try tree.index.read { transaction throws(Failure) in
            var children: [Node] = []
            for entry in try transaction.children(of: folder) {
                if let node = try transaction.node(entry.node) { children.append(node) }
            }
            return (try transaction.node(folder)?.isPopulated == true, children)
        }
    }
}
