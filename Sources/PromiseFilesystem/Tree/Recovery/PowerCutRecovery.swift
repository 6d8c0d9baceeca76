import Glibc
import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// Puts contents right when the machine lost its power, or was reset, with the index not closed in order. Before
/// the mount; what is pending is looked for afterwards.
struct PowerCutRecovery {
    let index: Index
    let content: ContentStore
    let remover: ContentRemover
    let clock: any TimeSource
    let logger: Logger
    let hasWriters: (NodeID) -> Bool

    /// One stat(2) for each file with local content, as the index may be older than the content file.
    func run() throws(Failure) {
        // Before anybody asks; again at the next start when this one does not come to its end.
        try index.write { transaction throws(Failure) in try ChangeNumbers.renew(transaction) }
        let (nodes, opened): ([Node], [Node]) = try index.read { transaction throws(Failure) in
            (
                try transaction.nodesWithContent(in: .whole) + transaction.nodesWithContent(in: .partial),
                try transaction.nodesOpenForWriting()
            )
        }
        for node in opened where node.content == .absent { try close(node.id) }
        // Nodes without a name are looked at by themselves.
        for node in nodes where node.linkCount > 0 && !hasWriters(node.id) { try recover(node) }
        // What was in doubt is not looked at again when the power fails once more.
        if !nodes.isEmpty { try index.synchronize() }
    }

    private func recover(_ node: Node) throws(Failure) {
        let status = try content.status(node.id, node.generation)
        let isCertain = node.durability.isWhole && node.content == .whole
        let agreed = isCertain ? [] : try index.read { transaction throws(Failure) in
            try transaction.agreedItems(of: node.id)
        }
        // What was brought to the disk is perhaps the last copy of a version.
        let mayBeLast =
            node.durability.isWhole && !agreed.contains { $0.item.version == node.version }
        let isAgreed =
            !agreed.isEmpty && !mayBeLast && agreed.allSatisfy { $0.edits == node.edits }
        let judgement = AfterPowerCut.judge(
            node, isAgreed: isAgreed, hasAgreed: !agreed.isEmpty, found: status.map { ($0.size, $0.modificationTime) },
            isComplete: { isComplete(node) })
        let found = status.map { "\($0.size)" } ?? "none"
        logger.debug(
            "content after a power cut",
            metadata: [
                "node": "\(node.id)",
                "reason": "node \(node.id): \(judgement) \(node.durability), \(found) of \(node.size) bytes",
            ])
        switch (judgement, status) {
        case (.fetchAgain, _):
            // What was recognised as ours has a version that the node was never given.
            try dropContent(of: node, agreed.first { $0.item.version == node.version } ?? agreed[0])
        case (.takeAsEdit, let status?): try takeAsEdit(node, status)
        case (.doubt, let status?): try doubt(node, status)
        case (.keep, _): try keep(node)
        default: try giveUp(node)
        }
    }

    /// Blocks that never reached the disk are holes (lseek(2)).
    private func isComplete(_ node: Node) -> Bool {
        guard let file = try? content.open(node.id, node.generation) else { return false }
        // SEEK_HOLE, which glibc shows only to GNU sources.
        return lseek(file.number, 0, 4) == off_t(node.size)
    }

    private func keep(_ node: Node) throws(Failure) {
        guard node.isOpenForWriting || !node.durability.isWhole else { return }
        try index.write { transaction throws(Failure) in try setAsFound(node.id, transaction) }
    }

    /// What was sent and not answered may be of bytes that are gone here: when it has arrived it is as if others had
    /// edited the file, and both are kept unless they are the same.
    private func setAsFound(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        guard var node = try transaction.node(id) else { return }
        try transaction.forgetSent(of: id)
        node.isOpenForWriting = false
        node.durability = .doubtful
        try transaction.update(node)
    }

    private func takeAsEdit(_ node: Node, _ status: FileStatus) throws(Failure) {
        try index.write { transaction throws(Failure) in try takeAsEdit(node, status, transaction) }
    }

    private func takeAsEdit(
        _ node: Node, _ status: FileStatus, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.takeSize(of: node.id, status, now: clock.now())
        try setAsFound(node.id, transaction)
    }

    /// What it was edited from is unknown now, so the engine compares it with the provider's version, and keeps both
    /// when they differ. In one transaction: a daemon that is killed in between would leave an edit of which nobody
    /// knows any more that it is in doubt.
    private func doubt(_ node: Node, _ status: FileStatus) throws(Failure) {
        try index.write { transaction throws(Failure) in
            try takeAsEdit(node, status, transaction)
            for entry in try transaction.entries(of: node.id) {
                guard let identifier = entry.identifier, let agreed = try transaction.synced(identifier) else { continue }
                var base = agreed
                base.item.version = ContentVersion("")
                try transaction.setSynced(base)
                if try transaction.remote(identifier) == nil {
                    try transaction.setRemote(identifier, .present(agreed.item))
                }
            }
        }
        logger.warning(
            "a file that was edited and not synchronized is compared with the provider's version",
            metadata: ["node": "\(node.id)"])
    }

    /// The provider has it, so it is fetched again rather than trusted.
    private func dropContent(of node: Node, _ agreed: SyncedItem) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var current = try transaction.node(node.id) else { return }
            try transaction.setRanges(of: current.id, to: ByteRangeSet())
            current.isOpenForWriting = false
            current.version = agreed.item.version
            current.size = agreed.item.size
            current.content = .absent
            current.generation = current.generation.next
            current.durability = .unknown
            current.localBytes = 0
            try transaction.update(current)
        }
        remover.remove(node.id, node.generation)
    }

    /// Of a file that was never synchronized the name may have reached the disk and the content not. It becomes what the
    /// provider has of it, as if it had not been saved, or else empty, as on any local disk.
    private func giveUp(_ node: Node) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var current = try transaction.node(node.id) else { return }
            try transaction.forgetSent(of: node.id)
            try transaction.setRanges(of: node.id, to: ByteRangeSet())
            try transaction.setHoles(of: node.id, to: ByteRangeSet())
            current.isOpenForWriting = false
            if let agreed = try transaction.agreedItem(of: node.id) {
                current.becomePlaceholder(of: agreed)
            } else {
                current.generation = current.generation.next
                _ = try content.create(node.id, current.generation)
                current.content = .whole
                current.size = 0
                current.localBytes = 0
                current.edits += 1
            }
            try transaction.update(current)
        }
        remover.remove(node.id, node.generation)
        logger.warning("a file that was never synchronized has lost its content", metadata: ["node": "\(node.id)"])
    }

    private func close(_ id: NodeID) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { return }
            node.isOpenForWriting = false
            try transaction.update(node)
        }
    }
}

extension Transaction {
    /// What was last agreed on about the items of a node's names.
    fileprivate func agreedItems(of node: NodeID) throws(Failure) -> [SyncedItem] {
        var result: [SyncedItem] = []
        for entry in try entries(of: node) {
            guard let identifier = entry.identifier, let agreed = try synced(identifier) else { continue }
            result.append(agreed)
        }
        return result
    }

    /// Whatever was sent of the file's content and is not answered.
    fileprivate func forgetSent(of node: NodeID) throws(Failure) {
        for entry in try entries(of: node) {
            try deleteSent(for: entry.id)
            if let identifier = entry.identifier { try deleteSent(of: identifier) }
        }
    }
}
