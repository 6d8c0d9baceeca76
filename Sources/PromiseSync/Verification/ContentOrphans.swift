package import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

/// Content files that no row of the index names. What an entry names whose node is lost is not
/// among them: it may be the only copy, and stays until the entry is given up
/// (`Transaction.repair`).
///
/// Where a row says that no content is here, or names a file that is not there, a file of that node
/// with edits that the provider has not seen is what the row should name: only the row is damaged.
package struct ContentOrphans {
    package struct Orphan: Sendable {
        package var node: NodeID
        package var generation: Generation
        /// The index does not know of the file, or knows an older one: it has lost what it was
        /// told. Otherwise the index has forgotten the file on purpose.
        package var mayHoldEdits: Bool
        /// The node's row should name it: size and time are those of the row.
        package var isContent = false
    }

    private let index: Index
    private let content: ContentStore

    package init(index: Index, content: ContentStore) {
        self.index = index
        self.content = content
    }

    package func find(isOpen: (NodeID) -> Bool) throws(Failure) -> [Orphan] {
        var found: [Orphan] = []
        try content.forEachFile { id, generation throws(Failure) in
            // The index is asked after the file was seen: whoever made it holds the index until its
            // row is there, or counts as having it open.
            let orphan = try index.read { transaction throws(Failure) in
                try judge(id, generation, transaction)
            }
            if let orphan, !isOpen(id) { found.append(orphan) }
        }
        return found
    }

    private func judge(
        _ id: NodeID, _ generation: Generation, _ transaction: borrowing Transaction
    ) throws(Failure) -> Orphan? {
        let node = try transaction.node(id)
        if let node {
            if node.generation == generation && node.content != .absent { return nil }
        } else {
            if try transaction.isNamed(id) { return nil }
            // A program has removed it, and can have it back.
            if try RemovedRows.file(of: id, transaction)?.generation == generation { return nil }
        }
        guard let status = try content.status(id, generation) else { return nil }
        var orphan = Orphan(node: id, generation: generation, mayHoldEdits: false)
        if let node {
            let isMissed = try isMissed(node, generation, transaction)
            orphan.mayHoldEdits = isMissed || generation > node.generation
            orphan.isContent =
                isMissed && status.size == node.size
                && status.modificationTime == node.modificationTime
        } else {
            orphan.mayHoldEdits = id >= transaction.nextNode
        }
        // An empty file is all that there is of a document that was just made.
        if status.blocks == 0 && !orphan.isContent { orphan.mayHoldEdits = false }
        return orphan
    }

    /// Whether the row lacks a content that the provider does not have. What is fetched has no row
    /// at first, and what was evicted has another number: neither was edited.
    private func isMissed(
        _ node: Node, _ generation: Generation, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard node.kind == .file, node.linkCount > 0 else { return false }
        let isLacking =
            if node.content == .absent {
                node.generation == generation
            } else {
                try content.status(node.id, node.generation) == nil
            }
        guard isLacking else { return false }
        let agreed = try transaction.agreedItem(of: node.id)
        return agreed.map { $0.edits != node.edits } ?? (node.version == nil)
    }

    /// Removes a file, or puts it aside where it may hold edits and returns where; one that a row
    /// should name is named again. What the index has forgotten must be on the disk:
    /// `Index.synchronize`. Nothing happens to a file that belongs to something by now.
    package func clear(_ orphan: Orphan, isOpen: (NodeID) -> Bool) throws(Failure) -> [UInt8]? {
        if orphan.isContent {
            try index.write { transaction throws(Failure) in
                try name(orphan, isOpen, transaction)
            }
            return nil
        }
        // All of it while nobody can make a file of this name.
        return try index.read { transaction throws(Failure) in
            guard let orphan = try judge(orphan.node, orphan.generation, transaction),
                !orphan.isContent, !isOpen(orphan.node)
            else { return nil }
            if orphan.mayHoldEdits { return try content.putAside(orphan.node, orphan.generation) }
            try content.remove(orphan.node, orphan.generation)
            return nil
        }
    }

    /// It is an edit, of which the provider is told.
    private func name(
        _ orphan: Orphan, _ isOpen: (NodeID) -> Bool, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let orphan = try judge(orphan.node, orphan.generation, transaction),
            orphan.isContent, !isOpen(orphan.node),
            let status = try content.status(orphan.node, orphan.generation),
            var node = try transaction.node(orphan.node)
        else { return }
        // A part is known by its ranges, which a row that says "absent" has none of.
        if node.content == .absent { node.content = .whole }
        node.generation = orphan.generation
        try transaction.update(node)
        try transaction.takeSize(of: node.id, status, now: status.modificationTime)
    }
}
