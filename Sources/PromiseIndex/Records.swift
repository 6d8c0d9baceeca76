package import PromiseCore

// What the index stores, as values. Rows and SQL stay inside this module.

/// A file, folder, link or special file of the mount, whatever its names.
package struct Node: Hashable, Sendable {
    package var id: NodeID
    package var kind: NodeKind
    /// Permission, set-id and sticky bits.
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    /// In bytes; of a placeholder too. The length of the target for a link.
    package var size: UInt64
    package var accessTime: Timestamp
    package var modificationTime: Timestamp
    package var changeTime: Timestamp
    package var birthTime: Timestamp
    /// Names this node has; of a folder 2 and one for each subfolder that is known; 0 of what was removed and is still open.
    package var linkCount: UInt32
    /// Device number of a device node, else 0.
    package var device: UInt64
    /// Where a link points.
    package var target: [UInt8]?
    package var content: ContentState
    /// Names the content file together with `id`.
    package var generation: Generation
    /// The provider's version that the content (or the placeholder) stands for or was edited from; nil for content born here.
    package var version: ContentVersion? {
        didSet { if version != oldValue { noteVersion() } }
    }
    /// Counts the content edits made here. Differs from the synced item's while the provider has not been told.
    package var edits: UInt64
    /// An open for writing was granted and not yet closed: after a crash the content file must be looked at.
    package var isOpenForWriting: Bool
    package var pin: Pin
    /// For eviction, least recent first.
    package var lastUse: Timestamp
    /// Bytes of disk the content file takes.
    package var localBytes: UInt64
    /// A folder's children are known.
    package var isPopulated: Bool
    /// What a power cut leaves of the content file.
    package var durability: Durability
    /// The node's only entry and the node itself say what both sides last agreed on, and the table `synced` has no row of it.
    /// Kept by the index, which ignores what callers put there.
    package var isAsSynced: Bool

    /// The node takes the place of others under an item, of which this many edits are known. One of theirs may be on its way to
    /// the provider and will be agreed on: so far on is the count that it is not taken for this node's.
    package mutating func succeed(_ others: UInt64) { edits = max(edits, others) + (1 << 32) }

    package init(
        id: NodeID, kind: NodeKind, mode: UInt32, owner: UInt32, group: UInt32, size: UInt64 = 0, time: Timestamp,
        content: ContentState = .absent, version: ContentVersion? = nil
    ) {
        self.id = id
        self.kind = kind
        self.mode = mode
        self.owner = owner
        self.group = group
        self.size = size
        accessTime = time
        modificationTime = time
        changeTime = time
        birthTime = time
        linkCount = kind == .folder ? 2 : 1
        device = 0
        self.content = content
        generation = Generation(0)
        self.version = version
        edits = 0
        isOpenForWriting = false
        pin = .automatic
        lastUse = time
        localBytes = 0
        isPopulated = false
        durability = .unknown
        isAsSynced = false
    }
}

extension Node {
    /// Subfolders came to a folder, or went.
    package mutating func countSubfolders(_ change: Int) {
        guard change != 0, linkCount > 0 else { return }
        linkCount = UInt32(max(2, Int(linkCount) + change))
    }
}

/// One name of a node. Hard links are several entries of one node.
package struct Entry: Hashable, Sendable {
    package var id: EntryID
    package var parent: NodeID
    package var name: FileName
    package var node: NodeID
    /// The provider's item behind this name; nil until the provider has it. At most one entry has an identifier.
    package var identifier: ItemIdentifier?
    /// Stays on this machine.
    package var isExcluded: Bool
    /// This is the second version of a conflict with that item, not resolved yet.
    package var conflictsWith: ItemIdentifier?
}

/// What this machine and the provider last agreed on about an item.
package struct SyncedItem: Hashable, Sendable {
    package var item: Item
    /// The node's `edits` when they agreed.
    package var edits: UInt64

    package init(item: Item, edits: UInt64) {
        self.item = item
        self.edits = edits
    }
}

/// What the provider says of an item now, where that differs from what was last agreed.
package enum RemoteState: Hashable, Sendable {
    case present(Item)
    case deleted
}

/// Something of which the provider has not been told. Only a reminder to plan: the plan itself is computed from the trees.
package struct Pending: Hashable, Sendable {
    package enum Subject: Hashable, Sendable {
        /// A name that was made, changed, renamed or moved here.
        case entry(EntryID)
        /// An item whose name was removed here.
        case deletion(ItemIdentifier)
    }

    package var subject: Subject
    /// When it first became pending.
    package var since: Timestamp
    /// Not to be tried before.
    package var due: Timestamp
    package var attempts: Int
    package var error: Failure.Code?
    package var message: String?

    package init(subject: Subject, since: Timestamp, due: Timestamp) {
        self.subject = subject
        self.since = since
        self.due = due
        attempts = 0
    }
}

/// One step of the change feed that queries, other mounts and presenters follow.
package struct Change: Hashable, Sendable {
    package enum Kind: Int, Sendable {
        case created = 0
        case modified = 1
        case moved = 2
        case deleted = 3
        /// Content arrived, left, or its state changed.
        case content = 4
        /// What the provider knows of it changed: it has it now, or refused it.
        case upload = 5
        /// The document has another unresolved version, whose name this is; has one less; has one that is a document of its own.
        case versionGained = 6
        case versionLost = 7
        case versionResolved = 8
        /// A name is about to be another one: this is the old place. The change `moved` follows right behind.
        case left = 9
        /// A document was this node until now; what it is follows right behind, as `modified`.
        case replaced = 10
    }

    /// Increases by one or more from change to change, across restarts.
    package var sequence: Int64
    package var kind: Kind
    package var node: NodeID
    package var parent: NodeID
    package var name: FileName?
    /// How many nodes it is about, one after the other from `node` on; more than one when a listing made them.
    package var count: Int
}

/// Totals for `status`.
package struct IndexCounts: Hashable, Sendable {
    package var nodes: Int
    package var placeholders: Int
    package var pending: Int
    package var failing: Int
    /// Bytes of disk taken by content files.
    package var localBytes: UInt64
    /// What was removed here and can come back, and bytes of disk that its contents take besides.
    package var removed: Int
    package var removedBytes: UInt64

    package init(
        nodes: Int, placeholders: Int, pending: Int, failing: Int, localBytes: UInt64, removed: Int = 0, removedBytes: UInt64 = 0
    ) {
        self.removed = removed
        self.removedBytes = removedBytes
        self.nodes = nodes
        self.placeholders = placeholders
        self.pending = pending
        self.failing = failing
        self.localBytes = localBytes
    }
}
