import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync

/// What this machine has of the old storage's files, so that they need not be fetched.
struct LocalContents: Sendable {
    let index: Index
    let content: ContentStore
    /// The old storage knows places only.
    let isByPlace: Bool

    /// Whole, not edited here since, and of the version that the old storage has at `path`.
    func content(of item: Item, at path: [FileName]) -> (any ContentSource)? {
        let known: Node?? = try? index.read { transaction throws(Failure) in
            guard let identifier = try identifier(of: item, at: path, transaction),
                let entry = try transaction.entry(for: identifier),
                let synced = try transaction.synced(identifier),
                synced.item.name == item.name, synced.item.version == item.version,
                let node = try transaction.node(entry.node), node.content == .whole,
                node.edits == synced.edits, node.version == item.version, node.size == item.size,
                !node.isOpenForWriting
            else { return nil }
            return node
        }
        guard let node = known ?? nil else { return nil }
        return try? UploadSource(content, node: node.id, generation: node.generation)
    }

    /// What the item is called here. Where places are all that a storage knows, an item that was
    /// moved keeps its identifier here, and the storage calls another one so that is at the place by
    /// now. Its version may be the same: some servers have nothing but size and time in it.
    private func identifier(
        of item: Item, at path: [FileName], _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        guard isByPlace else { return item.identifier }
        guard let root = try transaction.setting("root.identifier") else { return nil }
        var current = ItemIdentifier(root)
        for name in path {
            guard let known = try transaction.knownItem(in: current, named: name) else { return nil }
            current = known.identifier
        }
        return current
    }
}
