package import PromiseCore
import PromiseIndex

/// What the engine needs of whoever shows the local tree to programs: the filesystem. Called from the engine's threads.
package protocol LocalTreeObserver: Sendable {
    /// Whether a program has the node open or is opening it. Asked inside an index transaction: the filesystem announces an
    /// open before it reads the node, so an open that is not seen here will see what the transaction did.
    func isOpen(_ node: NodeID) -> Bool

    /// A name appeared, went, or stands for another node now.
    func entryChanged(in parent: NodeID, named name: FileName)

    /// Attributes changed; `content`: the bytes too.
    func nodeChanged(_ node: NodeID, content: Bool)

    /// Writes through open files that the index has not been told of yet are told now.
    func noteOpenWrites()

    /// When nodes were last used since the last call, for eviction.
    func takeRecentUses() -> [NodeID: Timestamp]
}
