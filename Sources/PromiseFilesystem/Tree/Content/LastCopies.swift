import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// Contents that no provider will have in a moment: the item that they were fetched from gets other content, or is removed, by an
/// exchange of names, e.g., while they go to another item or stay here. A power cut takes what is not on the disk, so they are
/// brought there by another thread, and until then the engine neither overwrites nor removes anything at the provider.
///
/// Thread-safe; the lock is a leaf.
final class LastCopies: Sendable {
    private let index: Index
    private let content: ContentStore
    private let opens: OpenTable
    private let hydrator: Hydrator
    private let workers: BlockingPool
    private let logger: Logger
    private let waiting = RankedMutex(.leaf, [NodeID]())

    init(
        index: Index, content: ContentStore, opens: OpenTable, hydrator: Hydrator,
        workers: BlockingPool, logger: Logger
    ) {
        self.index = index
        self.content = content
        self.opens = opens
        self.hydrator = hydrator
        self.workers = workers
        self.logger = logger
    }

    /// Some are not on the disk yet.
    var areWaiting: Bool { waiting.withLock { !$0.isEmpty } }

    /// Within the transaction that takes its item from the content, so that the engine, which asks within one, does not miss it;
    /// where that fails a file was synchronized for nothing. What was never sent is nobody's but ours, and as durable as
    /// whoever wrote it has asked for.
    func note(_ node: Node) {
        guard node.kind == .file, node.content != .absent, node.version != nil else { return }
        let isFirst = waiting.withLock { waiting in
            waiting.append(node.id)
            return waiting.count == 1
        }
        if isFirst { workers.submit { [self] in bringToDisk() } }
    }

    /// As `note`, of what a daemon that was killed has left.
    func noteWhatIsLeft() throws(Failure) {
        let nodes = try index.read { transaction throws(Failure) in try ContentQuestions.ofOtherVersions(transaction) }
        for node in nodes { note(node) }
    }

    private func bringToDisk() {
        while let next = waiting.withLock({ $0.first }) {
            do throws(Failure) {
                try bringToDisk(next)
            } catch {
                // What cannot be written to the disk is best sent to the provider soon.
                logger.warning("content that is only here is not on the disk", metadata: ["reason": "\(error.message)"])
            }
            waiting.withLock { _ = $0.removeFirst() }
        }
    }

    /// The content, and then the index, which says whose it is now.
    private func bringToDisk(_ id: NodeID) throws(Failure) {
        let node = try index.read { transaction throws(Failure) in try transaction.node(id) }
        guard let node, node.content != .absent else { return }
        if !node.durability.isWhole {
            let file = SharedDescriptor(try content.open(node.id, node.generation, writable: false))
            let fetched = hydrator.unsynchronized(of: id)
            try file.synchronize(label: "content.synchronize.last")
            hydrator.synchronized(fetched, of: id)
            try index.write { transaction throws(Failure) in
                try transaction.noteDurable(
                    node, isWrittenTo: opens.hasWriters(id),
                    unsynchronized: hydrator.unsynchronized(of: id))
            }
        }
        try index.synchronize()
    }
}
