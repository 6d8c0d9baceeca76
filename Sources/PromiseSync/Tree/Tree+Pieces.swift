import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseSystem

// Content of which a part was written here, and the rest is of a version that the provider has no
// more. What is here stays readable, under the name of a conflict version; the holes are known by
// name, read as zeros and are never sent.

extension Tree {
    /// The entry stands for no item any more. Nothing happens when its content does not depend on
    /// the provider, or is still there under another name.
    static func keepPieces(
        of entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        if try transaction.hasItem(entry.node, besides: entry) { return }
        guard try makeSparse(entry.node, &turn, transaction) else { return }
        if entry.conflictsWith == nil {
            try moveAside(entry, conflictsWith: nil, &turn, transaction)
        }
    }

    /// Partial content becomes whole, with holes. False when it is not partial.
    static func makeSparse(
        _ id: NodeID, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let status = try transaction.makeSparse(id, in: turn.world.content) else {
            return false
        }
        turn.notices.discarded.append(id)
        if let edits = try transaction.node(id)?.edits {
            turn.notices.hollow.append(HollowContent(node: id, edits: edits))
        }
        turn.notices.nodes.append((id, true))
        turn.log(.notice, "content was kept without what only the provider had", reason: "\(status.size)")
        return true
    }

    static func incompleteness(_ holes: ByteRangeSet) -> String {
        let shown = holes.ranges.prefix(3).map { "\($0.lower) to \($0.upper - 1)" }.joined(separator: ", ")
        let rest = holes.ranges.count > 3 ? " and \(holes.ranges.count - 3) more ranges" : ""
        return
            "the bytes \(shown)\(rest) are missing: the version that they are of is gone at the provider. "
            + "What was written here is kept; write the file anew, or remove it"
    }
}

extension Transaction {
    /// The version that pieces are of goes with one name's item: where another name's item was sent
    /// the same content, they are of that one's from now on.
    func rebasePieces(of id: NodeID, from base: SyncedItem?) throws(Failure) {
        guard let base, var node = try node(id), node.content == .partial,
            node.version == base.item.version
        else { return }
        for name in try entries(of: id) {
            guard let identifier = name.identifier, identifier != base.item.identifier,
                let known = try synced(identifier), known.edits == base.edits,
                known.item.size == base.item.size, try remote(identifier) == nil
            else { continue }
            node.version = known.item.version
            return try update(node)
        }
    }

    /// Another name of the node is an item with the very content that the node is of.
    fileprivate func hasItem(_ id: NodeID, besides entry: Entry) throws(Failure) -> Bool {
        guard let version = try node(id)?.version else { return false }
        for other in try entries(of: id) where other.id != entry.id {
            guard let identifier = other.identifier else { continue }
            if try synced(identifier)?.item.version == version { return true }
        }
        return false
    }

    /// What is here of partial content becomes all of it, with holes that read as zeros; nil when
    /// it is not partial.
    package func makeSparse(_ id: NodeID, in content: ContentStore) throws(Failure) -> FileStatus? {
        guard var node = try node(id), node.kind == .file, node.content == .partial else {
            return nil
        }
        var holes = ByteRangeSet()
        for range in try ranges(of: id).missing(in: ByteRange(0, node.size)) { holes.insert(range) }
        let file = try content.open(id, node.generation)
        let status: FileStatus
        do throws(SystemError) {
            try truncate(file.number, to: node.size, label: "content.sparse.size")
            // From here on the file's time tells of writes.
            try setTimes(
                file.number, access: nil, modification: node.modificationTime,
                label: "content.sparse.times")
            status = try FileStatus.of(descriptor: file.number, label: "content.sparse.status")
        } catch {
            throw Failure(error)
        }
        try setRanges(of: id, to: ByteRangeSet())
        node.content = .whole
        node.version = nil
        node.durability = .unknown
        node.localBytes = status.blocks * 512
        try update(node)
        try setHoles(of: id, to: holes)
        return status
    }
}
