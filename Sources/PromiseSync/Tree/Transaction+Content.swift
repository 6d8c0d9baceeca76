package import PromiseCore
package import PromiseIndex
package import PromiseSystem

// What the content file says of a node, and what the provider is known to have of it.

extension Node {
    /// The content file was written to.
    package mutating func take(_ status: FileStatus) {
        edits += 1
        size = status.size
        modificationTime = status.modificationTime
        changeTime = max(changeTime, status.changeTime)
        localBytes = status.blocks * 512
        noteWritten()
    }

    /// The content is given up for what was last agreed on with the provider; the ranges are the
    /// caller's to remove.
    package mutating func becomePlaceholder(of agreed: SyncedItem) {
        content = .absent
        generation = generation.next
        localBytes = 0
        durability = .unknown
        edits = agreed.edits
        version = agreed.item.version
        size = agreed.item.size
        modificationTime = agreed.item.metadata.modificationTime
    }
}

extension Transaction {
    /// Whether a file's content is to come from the item of one name alone, as its other names were given here and
    /// nobody was told of them yet: when that item has another version they go on with it.
    func isOnlyPromised(_ node: Node, by name: Entry) throws(Failure) -> Bool {
        if node.content == .whole { return false }
        return try entries(of: node.id).allSatisfy { $0.id == name.id || $0.identifier == nil }
    }

    /// Not every name of it is an item that has exactly this content: what is here of it may be kept, or
    /// sent, as ours.
    func hasOurs(_ node: Node) throws(Failure) -> Bool {
        let names = try entries(of: node.id)
        for name in names {
            guard let identifier = name.identifier, try synced(identifier)?.edits == node.edits
            else { return true }
        }
        return names.isEmpty
    }

    /// The content file has another size than the index knows, and is right: an edit. Nothing
    /// happens when the node is gone.
    package func takeSize(of id: NodeID, _ status: FileStatus, now: Timestamp) throws(Failure) {
        guard var node = try node(id) else { return }
        if node.content == .partial {
            var ranges = try ranges(of: id)
            ranges.remove(ByteRange(min(status.size, node.size), max(status.size, node.size)))
            if status.size > node.size { ranges.insert(ByteRange(node.size, status.size)) }
            try setRanges(of: id, to: ranges)
        }
        node.take(status)
        try update(node)
        for entry in try entries(of: id) where !entry.isExcluded {
            try setPending(Pending(subject: .entry(entry.id), since: now, due: now))
        }
    }

    package enum Stock {
        case taken, missing
        /// It is a placeholder again; its content file is the caller's to remove.
        case dropped
    }

    /// Of a file that was open for writing when its daemon died. The kernel may have written to whole content without the
    /// index being told: the content file says so.
    package func takeStock(of id: NodeID, _ status: FileStatus?, now: Timestamp) throws(Failure) -> Stock {
        guard var node = try node(id) else { return .taken }
        node.isOpenForWriting = false
        guard let status, node.content != .absent else {
            let isMissing = node.content != .absent
            if isMissing, node.version != nil { node.content = .absent }
            try update(node)
            return isMissing ? .missing : .taken
        }
        if node.content == .partial, try dropUnlessEdited(&node, status) { return .dropped }
        try update(node)
        let isWritten = node.content != .partial && (status.modificationTime != node.modificationTime || node.version == nil)
        if isWritten || status.size != node.size { try takeSize(of: id, status, now: now) }
        return .taken
    }

    /// Each fetch gives partial content a new time, and a write to it is in the index before it returns. What was not
    /// edited by that is fetched again: it may have bytes of a write that never returned.
    private func dropUnlessEdited(_ node: inout Node, _ status: FileStatus) throws(Failure) -> Bool {
        guard let agreed = try agreedItem(of: node.id), node.edits == agreed.edits,
            node.version == agreed.item.version, status.size >= node.size
        else { return false }
        try setRanges(of: node.id, to: ByteRangeSet())
        node.becomePlaceholder(of: agreed)
        try update(node)
        return true
    }

    /// What was last agreed on about the item of a node's first name that has one.
    package func agreedItem(of id: NodeID) throws(Failure) -> SyncedItem? {
        for entry in try entries(of: id) {
            if let identifier = entry.identifier, let agreed = try synced(identifier) {
                return agreed
            }
        }
        return nil
    }
}
