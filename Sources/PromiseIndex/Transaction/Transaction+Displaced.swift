package import PromiseCore

/// A node that lost its name to a change of the provider while a program had it open. What is written to it afterwards is
/// somebody's work, and gets a name again at the last close.
package struct DisplacedNode: Hashable, Sendable {
    package var node: NodeID
    /// Where its name was; the folder above, when that folder was removed since.
    package var parent: NodeID
    package var name: FileName
    /// The node's edits when it lost its name: more of them are somebody's work.
    package var edits: UInt64
    /// The item that has the name now; nil when the provider removed it.
    package var conflictsWith: ItemIdentifier?

    package init(node: NodeID, parent: NodeID, name: FileName, edits: UInt64, conflictsWith: ItemIdentifier?) {
        self.node = node
        self.parent = parent
        self.name = name
        self.edits = edits
        self.conflictsWith = conflictsWith
    }
}

extension Transaction {
    package func displaced(_ node: NodeID) throws(Failure) -> DisplacedNode? {
        try connection.first("SELECT * FROM displaced WHERE node = ?1", .id(node)) { row in
            DisplacedNode(
                node: row.node(0), parent: row.node(1), name: row.name(2), edits: row.unsigned(3),
                conflictsWith: row.identifier(4))
        }
    }

    /// Inserts or replaces. The row goes with the node, or by `deleteDisplaced`.
    package func setDisplaced(_ displaced: DisplacedNode) throws(Failure) {
        try store.change(
            """
            INSERT INTO displaced VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT DO UPDATE SET parent = ?2, name = ?3, edits = ?4, conflicts_with = ?5
            """, .id(displaced.node), .id(displaced.parent), .name(displaced.name), .unsigned(displaced.edits),
            .identifier(displaced.conflictsWith))
    }

    /// Nothing happens when there is none.
    package func deleteDisplaced(_ node: NodeID) throws(Failure) {
        try store.change("DELETE FROM displaced WHERE node = ?1", .id(node))
    }

    /// A folder goes: what had its name there had it, for all that is left, in the folder above.
    func moveDisplaced(from folder: NodeID, to parent: NodeID) throws(Failure) {
        try store.change("UPDATE displaced SET parent = ?2 WHERE parent = ?1", .id(folder), .id(parent))
    }
}

// Ranges of whole content that nobody has the bytes of: they read as zeros.

extension Transaction {
    package func holes(of node: NodeID) throws(Failure) -> ByteRangeSet {
        guard store.hasHoles else { return ByteRangeSet() }
        let ranges = try connection.all("SELECT lower, upper FROM hole WHERE node = ?1 ORDER BY lower", .id(node)) { row in
            (lower: row.unsigned(0), upper: row.unsigned(1))
        }
        var result = ByteRangeSet()
        for range in ranges where range.lower < range.upper { result.insert(ByteRange(range.lower, range.upper)) }
        return result
    }

    /// Replaces what was known; none: the content is complete.
    package func setHoles(of node: NodeID, to holes: ByteRangeSet) throws(Failure) {
        if !store.hasHoles && holes.ranges.isEmpty { return }
        store.hasHoles = true
        try store.change("DELETE FROM hole WHERE node = ?1", .id(node))
        for range in holes.ranges {
            try store.change("INSERT INTO hole VALUES (?1, ?2, ?3)", .id(node), .unsigned(range.lower), .unsigned(range.upper))
        }
    }

    /// The content ends at `size` now.
    package func cutHoles(of node: NodeID, to size: UInt64) throws(Failure) {
        var holes = try holes(of: node)
        guard let last = holes.ranges.last, last.upper > size else { return }
        holes.remove(ByteRange(size, last.upper))
        try setHoles(of: node, to: holes)
    }
}
