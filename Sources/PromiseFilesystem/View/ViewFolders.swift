package import PromiseCore
import PromiseIndex
import PromiseSystem

/// Where the files of launches are that are no documents: in a folder of the domain's root that
/// stays on this machine, and is there only while there are launches.
package struct ViewFolders: Sendable {
    /// One launch's.
    package struct Place: Sendable {
        var name: FileName
        var node: NodeID
        var scratch: NodeID
        var roots: [ViewRoot]
        /// Whom the domain belongs to.
        var owner: UInt32
        var group: UInt32
    }

    package static let folderName = FileName(trusted: Array(".promisefs-views".utf8))
    private static let scratchName = FileName(trusted: Array("scratch".utf8))
    package static let importsName = FileName(trusted: Array("imports".utf8))

    let filesystem: FileSystem

    package init(_ filesystem: FileSystem) { self.filesystem = filesystem }

    /// `name` is the launch's, which no other has.
    package func make(_ name: FileName) throws(Failure) -> Place {
        let place: Place = try filesystem.index.write { transaction throws(Failure) in
            guard let root = try transaction.node(.root) else {
                throw Failure(.corrupted, "the index has no root folder")
            }
            let all = try folder(Self.folderName, in: root, transaction)
            guard let own = try transaction.node(all.node) else {
                throw Failure(.corrupted, "a folder has no node")
            }
            let launch = try folder(name, in: own, transaction)
            guard let launchNode = try transaction.node(launch.node) else {
                throw Failure(.corrupted, "a folder has no node")
            }
            let scratch = try folder(Self.scratchName, in: launchNode, transaction)
            let imports = try folder(Self.importsName, in: launchNode, transaction)
            return Place(
                name: name, node: launch.node, scratch: scratch.node,
                roots: [
                    ViewRoot(
                        name: Self.scratchName, entry: scratch.id, rights: .readWrite,
                        place: .scratch),
                    ViewRoot(
                        name: Self.importsName, entry: imports.id, rights: .readWrite, place: .top),
                ],
                owner: root.owner, group: root.group)
        }
        filesystem.entryChanged(in: .root, named: Self.folderName)
        return place
    }

    /// A folder that is there already is taken.
    private func folder(
        _ name: FileName, in parent: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry {
        if let known = try transaction.entry(in: parent.id, named: name) { return known }
        var node = Node(
            id: .root, kind: .folder, mode: 0o700, owner: parent.owner, group: parent.group,
            time: filesystem.clock.now())
        node.isPopulated = true
        let made = try transaction.insert(node)
        try filesystem.touch(parent, subfolders: 1, transaction)
        let entry = try transaction.insertEntry(
            in: parent.id, named: name, node: made.id, identifier: nil, isExcluded: true)
        // As when it goes: who follows would hear of the one and not of the other.
        try transaction.record(.created, node: made.id, parent: parent.id, name: name)
        return entry
    }

    // MARK: Removing

    /// With everything in it: it was copies and half-saved files. Never on a serving thread.
    package func remove(_ place: Place) {
        guard let all = entry(Self.folderName, in: .root) else { return }
        remove(place.name, in: all.node, depth: 0)
        removeIfEmpty()
    }

    /// What launches have left that ended with a daemon before this one.
    package func sweep() {
        guard let all = entry(Self.folderName, in: .root), all.isExcluded else { return }
        for child in children(of: all.node) { remove(child.name, in: all.node, depth: 0) }
        removeIfEmpty()
    }

    private func removeIfEmpty() {
        guard entry(Self.folderName, in: .root)?.isExcluded == true else { return }
        _ = filesystem.removeFolder(Self.folderName, in: .root, caller: caller) { _ in }
        filesystem.entryChanged(in: .root, named: Self.folderName)
    }

    private func remove(_ name: FileName, in parent: NodeID, depth: Int) {
        guard depth < 1024, let entry = entry(name, in: parent) else { return }
        let kind = (try? filesystem.known(entry.node))?.kind
        if kind == .folder {
            for child in children(of: entry.node) {
                remove(child.name, in: entry.node, depth: depth + 1)
            }
            _ = filesystem.removeFolder(name, in: parent, caller: caller) { _ in }
        } else {
            _ = filesystem.unlink(name, in: parent, caller: caller) { _ in }
        }
        filesystem.entryChanged(in: parent, named: name)
    }

    private var caller: Caller { Caller(user: 0, group: 0, process: 0, isOfView: true) }

    private func entry(_ name: FileName, in parent: NodeID) -> Entry? {
        let found = try? filesystem.index.read { transaction throws(Failure) in
            try transaction.entry(in: parent, named: name)
        }
        return found ?? nil
    }

    private func children(of folder: NodeID) -> [Entry] {
        let found = try? filesystem.index.read { transaction throws(Failure) in
            try transaction.children(of: folder)
        }
        return found ?? []
    }
}
