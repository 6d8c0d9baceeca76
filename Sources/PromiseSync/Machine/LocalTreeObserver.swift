package import PromiseCore
package import PromiseIndex
package import PromiseSystem

/// What the provider did to an item that is followed here.
package enum RemoteChange: Hashable, Sendable {
    case replaced, moved, removed
}

/// What the engine needs of whoever shows the local tree to programs: the filesystem. Called from
/// the engine's threads.
package protocol LocalTreeObserver: Sendable {
    /// Whether a program has the node open or is opening it. Asked inside an index transaction: the
    /// filesystem announces an open before it reads the node, so an open that is not seen here will
    /// see what the transaction did.
    func isOpen(_ node: NodeID) -> Bool

    /// A name appeared, went, or stands for another node now.
    func entryChanged(in parent: NodeID, named name: FileName)

    /// Attributes changed; `content`: the bytes too.
    func nodeChanged(_ node: NodeID, content: Bool)

    /// All of this that programs see, for those that watch; after the kernel's notices of it.
    func treeChanged(_ changes: [TreeChange])

    /// Writes through open files that the index has not been told of yet are told now.
    func noteOpenWrites()

    /// The same of one node, within a transaction: before its content is replaced or its name goes.
    func noteOpenWrites(of node: NodeID, _ transaction: borrowing Transaction) throws(Failure)

    /// The content file of a node that is written to is given the node's time, within the
    /// transaction that changed it, after `noteOpenWrites`: another time would look like a write.
    func giveTime(toOpen node: Node) throws(Failure)

    /// Whether a change of the provider may be followed now. False while somebody reads or writes
    /// the item in coordination with others, or is being asked to let go of it; when that is over
    /// the engine is told to look again. What was allowed stays so until `remoteChangesFollowed`.
    func mayFollow(_ change: RemoteChange, of node: NodeID, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool

    /// Whether content is not on the disk yet that is nowhere else once the provider is told of what
    /// was done here: it is told of no other content and of no removal before. Asked inside an index
    /// transaction.
    var keepsLastCopies: Bool { get }

    /// Everything that may be followed has been.
    func remoteChangesFollowed()

    /// Whether somebody coordinates reading or writing the item, or shows it.
    func isUsed(_ node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool

    /// What programs watch: by inotify, by a live query, or as presenters. Takes some milliseconds; not
    /// within a transaction.
    func watchedNodes() -> WatchedNodes

    /// Documents are other nodes now. `before`: their names, as they were.
    func namesReplaced(_ before: [Entry])

    /// When nodes were last used since the last call, for eviction.
    func takeRecentUses() -> [NodeID: Timestamp]
}
