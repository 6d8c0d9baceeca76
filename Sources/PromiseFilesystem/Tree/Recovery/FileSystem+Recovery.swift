import Logging
import PromiseContent
package import PromiseCore
import PromiseIndex
package import PromiseSync
import PromiseSystem

// What a daemon that died left behind, put right before the next mount.

extension FileSystem {
    /// Before the mount. `isUnclean`: the daemon did not end in order. `hasPowerFailed`: the machine was started anew since
    /// the index was last closed in order, so content that was never synchronized may not have reached the disk.
    package func recover(isUnclean: Bool, hasPowerFailed: Bool) throws(Failure) {
        let (written, nameless): ([Node], [Node]) = try index.read { transaction throws(Failure) in
            (try transaction.nodesOpenForWriting(), try transaction.orphans())
        }
        // What the kernel has open through the daemon before is looked at in `resumeOpenFiles`.
        for node in nameless where !opens.isOpen(node.id) { try deleteNameless(node) }
        if hasPowerFailed {
            try trash.forgetTorn()
            try PowerCutRecovery(
                index: index, content: content, remover: engine.remover, clock: clock, logger: logger,
                hasWriters: { [opens] in opens.hasWriters($0) }
            ).run()
        } else {
            for node in written where node.linkCount > 0 && !opens.hasWriters(node.id) {
                // A mapping outlives a daemon, too.
                if !linger(node.id) { try takeStock(of: node) }
            }
            if isUnclean { try matchSizes() }
        }
        let now = clock.now()
        logger.warn(of: try index.write { transaction throws(Failure) in try transaction.rebuildPending(now: now) })
        try lastCopies.noteWhatIsLeft()
        if !written.isEmpty || !nameless.isEmpty {
            logger.notice(
                "recovered from an unclean end",
                metadata: ["written": "\(written.count)", "nameless": "\(nameless.count)", "power": "\(hasPowerFailed)"])
        }
    }

    /// Unlinked while open; nobody has it open any more. What others took the name of may hold work.
    private func deleteNameless(_ node: Node) throws(Failure) {
        if node.isOpenForWriting { try takeStock(of: node) }
        let removed: Removed? = try index.write { transaction throws(Failure) in
            guard let current = try transaction.node(node.id) else { return Removed(node: node, isDeleted: true) }
            if try resurface(current, transaction) != nil { return nil }
            return try trash.delete(current, transaction)
        }
        finish(removed)
        if removed == nil { logger.notice("what was written to a file after others replaced or removed it was kept") }
    }

    /// The kernel may have written without the index being told: the content file says so.
    private func takeStock(of node: Node) throws(Failure) {
        let status = try content.status(node.id, node.generation)
        let stock = try index.write { transaction throws(Failure) in
            try transaction.takeStock(of: node.id, status, now: clock.now())
        }
        switch stock {
        case .taken: break
        case .missing:
            logger.error("the content of a file that was being written is missing", metadata: ["node": "\(node.id)"])
        case .dropped: engine.remover.remove(node.id, node.generation)
        }
    }

    /// A truncation cuts the content file first and is committed then. Where the daemon died in between, it has happened.
    ///
    /// One stat(2) for each file with local content; after an unclean end only.
    private func matchSizes() throws(Failure) {
        let nodes: [Node] = try index.read { transaction throws(Failure) in
            try transaction.nodesWithContent(in: .whole) + transaction.nodesWithContent(in: .partial)
        }
        for node in nodes where !opens.hasWriters(node.id) {
            guard let status = try content.status(node.id, node.generation), status.size != node.size else { continue }
            try index.write { transaction throws(Failure) in try transaction.takeSize(of: node.id, status, now: clock.now()) }
        }
    }

    /// Content files that no row names: what a crash left between making a file and committing its row, or between
    /// committing a removal and removing. One that may hold edits, because the index has lost what it was told, is put
    /// aside, or is its node's content again. Takes long for a large store; may run while the mount serves.
    package func removeRubbish() throws(Failure) -> Int {
        let orphans = ContentOrphans(index: index, content: content)
        let mayBeUsed = { [opens, isInMaking] (node: NodeID) in opens.isOpen(node) || isInMaking(node) }
        let found = try orphans.find(isOpen: mayBeUsed)
        if !found.isEmpty { try index.synchronize() }
        for orphan in found {
            let place = try orphans.clear(orphan, isOpen: mayBeUsed)
            if orphan.isContent {
                nodeChanged(orphan.node, content: true)
                engine.notePending()
                logger.warning("the index did not know the content of a file", metadata: ["node": "\(orphan.node)"])
            }
            guard let place else { continue }
            logger.warning(
                "a content file that the index does not know was put aside", metadata: ["at": "\(escapedForDisplay(place))"])
        }
        return found.count
    }

    /// Whether a content file that the index does not know of may be about to get its row.
    private var isInMaking: (NodeID) -> Bool {
        { [spares, hydrator = engine.hydrator] in spares.mayHold($0) || hydrator.isBusy($0) }
    }

    /// Compares the index with the content store.
    package func verifyContent(repair: Bool) -> ContentVerification {
        ContentVerification(
            index: index, content: content, clock: clock, isRepairing: repair, isOpen: { [opens] in opens.isOpen($0) },
            isInMaking: isInMaking,
            onChange: { [engine, weak self] node in
                engine.hydrator.discard(node, because: Failure(.stale, "the content was found to be damaged"))
                self?.nodeChanged(node, content: true)
                engine.notePending()
            })
    }
}

extension Logger {
    fileprivate func warn(of sentences: [String]) {
        for sentence in sentences.prefix(10) { warning("\(sentence)") }
        if sentences.count > 10 { warning("and so did \(sentences.count - 10) others") }
        if !sentences.isEmpty { warning("the index is damaged: 'promisefs verify --repair' mends it") }
    }
}
