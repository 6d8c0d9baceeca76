package import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

/// Content files that no row of the index names. What an entry names whose node is lost is not
/// among them: it may be the only copy, and stays until the entry is given up
/// (`Transaction.repair`).
package struct ContentOrphans {
    package struct Orphan: Sendable {
        package var node: NodeID
        package var generation: Generation
        /// The index does not know of the file, or knows an older one: it has lost what it was
        /// told. Otherwise the index has forgotten the file on purpose.
        package var mayHoldEdits: Bool
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
        let isNewer: Bool
        if let node = try transaction.node(id) {
            if node.generation == generation && node.content != .absent { return nil }
            isNewer = generation > node.generation
        } else {
            if try transaction.isNamed(id) { return nil }
            // A program has removed it, and can have it back.
            if try RemovedRows.file(of: id, transaction)?.generation == generation { return nil }
            isNewer = id >= transaction.nextNode
        }
        let isEmpty = try (content.status(id, generation)?.blocks ?? 0) == 0
        return Orphan(node: id, generation: generation, mayHoldEdits: isNewer && !isEmpty)
    }

    /// Removes a file, or puts it aside where it may hold edits and returns where. What the index
    /// has forgotten must be on the disk: `Index.synchronize`. Nothing happens to a file that
    /// belongs to something by now.
    package func clear(_ orphan: Orphan, isOpen: (NodeID) -> Bool) throws(Failure) -> [UInt8]? {
        // All of it while nobody can make a file of this name.
        try index.read { transaction throws(Failure) in
            guard let orphan = try judge(orphan.node, orphan.generation, transaction),
                !isOpen(orphan.node)
            else { return nil }
            if orphan.mayHoldEdits { return try content.putAside(orphan.node, orphan.generation) }
            try content.remove(orphan.node, orphan.generation)
            return nil
        }
    }
}
