package import PromiseCore
package import PromiseSystem

/// STUB: signatures only; to be implemented.
///
/// The index of one domain: SQLite in WAL mode, one writer, a bounded cache of nodes and entries in memory.
///
/// Thread-safe. `write` commits before it returns and shares its commit with writers that wait at the same moment.
/// Reads see every committed and at most some about-to-be-committed changes.
package final class Index: Sendable {
    /// Opens or creates `path` (bytes), migrates the schema, makes the root folder node.
    package init(path: [UInt8], cacheCountMax: Int = 100_000, clock: any TimeSource = SystemClock()) throws(Failure) { fatalError("stub") }

    /// Reads several things at one moment.
    package func read<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value { fatalError("stub") }

    /// Runs `body` in a transaction; all or nothing. When it throws, nothing has changed. Committed when this returns.
    package func write<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value { fatalError("stub") }

    /// Makes everything committed survive a power cut: fsync of the write-ahead log.
    package func synchronize() throws(Failure) { fatalError("stub") }

    /// Moves the log into the database file; called now and then by a background thread, never by a mount request.
    package func checkpoint() throws(Failure) { fatalError("stub") }

    /// Checks schema, SQLite's integrity_check, and every invariant between tables; returns a sentence for each violation.
    package func verify() throws(Failure) -> [String] { fatalError("stub") }

    /// Closes the database cleanly (checkpoint and truncate the log).
    package func close() { fatalError("stub") }
}

/// What can be read and changed at one moment. Valid only inside the closure that was given it.
package struct Transaction: ~Copyable {
    // Nodes. `node(_:)` is answered from the cache when it can be.
    package func node(_ id: NodeID) throws(Failure) -> Node? { fatalError("stub") }
    /// Assigns the id (the one given is ignored) and returns the node as stored.
    package func insert(_ node: Node) throws(Failure) -> Node { fatalError("stub") }
    package func update(_ node: Node) throws(Failure) { fatalError("stub") }
    /// Removes the node with its attributes and ranges. It must have no entry.
    package func delete(_ node: NodeID) throws(Failure) { fatalError("stub") }

    // Entries.
    package func entry(in parent: NodeID, named name: FileName) throws(Failure) -> Entry? { fatalError("stub") }
    package func entry(_ id: EntryID) throws(Failure) -> Entry? { fatalError("stub") }
    package func entry(for identifier: ItemIdentifier) throws(Failure) -> Entry? { fatalError("stub") }
    package func entries(of node: NodeID) throws(Failure) -> [Entry] { fatalError("stub") }
    /// Ordered by name bytes.
    package func children(of parent: NodeID) throws(Failure) -> [Entry] { fatalError("stub") }
    package func hasChildren(_ parent: NodeID) throws(Failure) -> Bool { fatalError("stub") }
    /// Throws `.exists` when the name is taken.
    package func insertEntry(
        in parent: NodeID, named name: FileName, node: NodeID, identifier: ItemIdentifier?, isExcluded: Bool = false,
        conflictsWith: ItemIdentifier? = nil
    ) throws(Failure) -> Entry { fatalError("stub") }
    package func update(_ entry: Entry) throws(Failure) { fatalError("stub") }
    package func delete(_ entry: EntryID) throws(Failure) { fatalError("stub") }
    /// The names from the root to a node by its first entry; nil for a node without a name. Empty for the root.
    package func path(of node: NodeID) throws(Failure) -> [FileName]? { fatalError("stub") }

    // The synced tree.
    package func synced(_ identifier: ItemIdentifier) throws(Failure) -> SyncedItem? { fatalError("stub") }
    package func setSynced(_ item: SyncedItem) throws(Failure) { fatalError("stub") }
    package func deleteSynced(_ identifier: ItemIdentifier) throws(Failure) { fatalError("stub") }
    /// A synced item at this place that no entry stands for (its name was removed or reused here).
    package func unboundSynced(in parent: ItemIdentifier, named name: FileName) throws(Failure) -> SyncedItem? { fatalError("stub") }
    package func syncedChildren(of parent: ItemIdentifier) throws(Failure) -> [SyncedItem] { fatalError("stub") }

    // The remote tree: stored only where it differs from the synced one; nil means "as synced".
    package func remote(_ identifier: ItemIdentifier) throws(Failure) -> RemoteState? { fatalError("stub") }
    package func setRemote(_ identifier: ItemIdentifier, _ state: RemoteState?) throws(Failure) { fatalError("stub") }
    /// What the provider has in a folder, by all that is known: the synced tree with the differences applied.
    package func remoteChildren(of parent: ItemIdentifier) throws(Failure) -> [Item] { fatalError("stub") }
    /// Items whose remote state differs from the synced one, oldest first.
    package func divergences(limit: Int) throws(Failure) -> [(identifier: ItemIdentifier, state: RemoteState)] { fatalError("stub") }
    /// The provider's path of an item: names from the root by the remote tree; nil when a parent is unknown. Empty for the root.
    package func remotePath(of identifier: ItemIdentifier) throws(Failure) -> [FileName]? { fatalError("stub") }

    // What the provider has not been told.
    package func pending(_ subject: Pending.Subject) throws(Failure) -> Pending? { fatalError("stub") }
    package func setPending(_ pending: Pending) throws(Failure) { fatalError("stub") }
    package func deletePending(_ subject: Pending.Subject) throws(Failure) { fatalError("stub") }
    /// Due at `now`, oldest due first.
    package func duePending(at now: Timestamp, limit: Int) throws(Failure) -> [Pending] { fatalError("stub") }
    package func nextPendingDue() throws(Failure) -> Timestamp? { fatalError("stub") }
    /// Oldest first.
    package func allPending(limit: Int) throws(Failure) -> [Pending] { fatalError("stub") }
    /// Makes every pending row due now, e.g. when the provider is back or somebody waits.
    package func makeAllPendingDue(at now: Timestamp) throws(Failure) { fatalError("stub") }

    // Extended attributes; names and values are bytes.
    package func attribute(_ name: [UInt8], of node: NodeID) throws(Failure) -> [UInt8]? { fatalError("stub") }
    package func attributeNames(of node: NodeID) throws(Failure) -> [[UInt8]] { fatalError("stub") }
    package func setAttribute(_ name: [UInt8], of node: NodeID, to value: [UInt8]) throws(Failure) { fatalError("stub") }
    /// False when there was none.
    package func removeAttribute(_ name: [UInt8], of node: NodeID) throws(Failure) -> Bool { fatalError("stub") }

    // Which bytes of partial content are local.
    package func ranges(of node: NodeID) throws(Failure) -> ByteRangeSet { fatalError("stub") }
    package func setRanges(of node: NodeID, to ranges: ByteRangeSet) throws(Failure) { fatalError("stub") }

    // The change feed.
    package func record(_ kind: Change.Kind, node: NodeID, parent: NodeID, name: FileName?) throws(Failure) { fatalError("stub") }
    /// After `sequence`, in order.
    package func changes(since sequence: Int64, limit: Int) throws(Failure) -> [Change] { fatalError("stub") }
    package func lastChange() throws(Failure) -> Int64 { fatalError("stub") }

    // Questions of the daemon.
    package func populatedFolders() throws(Failure) -> [NodeID] { fatalError("stub") }
    package func nodesOpenForWriting() throws(Failure) -> [Node] { fatalError("stub") }
    /// Nodes without a name: unlinked while open, and left by a crash.
    package func orphans() throws(Failure) -> [Node] { fatalError("stub") }
    /// Nodes with local content, least recently used first, not pinned, not open for writing, after `after` in that order.
    package func evictionCandidates(limit: Int) throws(Failure) -> [Node] { fatalError("stub") }
    package func nodesWithContent(in state: ContentState) throws(Failure) -> [Node] { fatalError("stub") }
    /// Nodes whose content file may not have reached the disk and that the provider can give again.
    package func undurableCleanNodes() throws(Failure) -> [Node] { fatalError("stub") }
    package func counts() throws(Failure) -> IndexCounts { fatalError("stub") }
    /// Entries whose name contains `text` (three characters or more), by the full-text index of names.
    package func search(names text: String, limit: Int) throws(Failure) -> [Entry] { fatalError("stub") }
    /// Puts a pending row for every difference between the local and the synced tree that has none: the queue can be rebuilt.
    package func rebuildPending(now: Timestamp) throws(Failure) { fatalError("stub") }

    // Small facts about the domain (root identifier, anchor, boot id, …).
    package func setting(_ key: String) throws(Failure) -> String? { fatalError("stub") }
    package func setSetting(_ key: String, _ value: String?) throws(Failure) { fatalError("stub") }
}
