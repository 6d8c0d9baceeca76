package import PromiseCore

// Extended attributes, and which bytes of partial content are local.

extension Transaction {
    package func attribute(_ name: [UInt8], of node: NodeID) throws(Failure) -> [UInt8]? {
        if !store.hasAttributes { return nil }
        return try connection.first("SELECT value FROM attribute WHERE node = ?1 AND name = ?2", .id(node), .bytes(name)) {
            $0.bytes(0)
        }
    }

    /// Ordered by name bytes.
    package func attributeNames(of node: NodeID) throws(Failure) -> [[UInt8]] {
        if !store.hasAttributes { return [] }
        return try connection.all("SELECT name FROM attribute WHERE node = ?1 ORDER BY name", .id(node)) { $0.bytes(0) }
    }

    /// Inserts or replaces. The caller sees to limits and flags of setxattr(2).
    package func setAttribute(_ name: [UInt8], of node: NodeID, to value: [UInt8]) throws(Failure) {
        store.hasAttributes = true
        store.touch(node)
        try store.change(
            "INSERT INTO attribute VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = ?3", .id(node), .bytes(name),
            .bytes(value))
    }

    /// False when there was none.
    package func removeAttribute(_ name: [UInt8], of node: NodeID) throws(Failure) -> Bool {
        store.touch(node)
        return try store.change("DELETE FROM attribute WHERE node = ?1 AND name = ?2", .id(node), .bytes(name)) > 0
    }

    package func ranges(of node: NodeID) throws(Failure) -> ByteRangeSet {
        let ranges = try connection.all("SELECT lower, upper FROM local_range WHERE node = ?1 ORDER BY lower", .id(node)) { row in
            (lower: row.unsigned(0), upper: row.unsigned(1))
        }
        var result = ByteRangeSet()
        for range in ranges {
            guard range.lower <= range.upper else {
                throw Failure(.corrupted, "node \(node) has a local range that ends before it begins")
            }
            result.insert(ByteRange(range.lower, range.upper))
        }
        return result
    }

    package func setRanges(of node: NodeID, to ranges: ByteRangeSet) throws(Failure) {
        let old = try self.ranges(of: node)
        if old == ranges { return }
        // Ranges come and grow one at a time; most rows stay.
        let kept = Set(ranges.ranges)
        let present = Set(old.ranges)
        for range in old.ranges where !kept.contains(range) {
            try store.change("DELETE FROM local_range WHERE node = ?1 AND lower = ?2", .id(node), .unsigned(range.lower))
        }
        for range in ranges.ranges where !present.contains(range) {
            try store.change(
                "INSERT INTO local_range VALUES (?1, ?2, ?3)", .id(node), .unsigned(range.lower), .unsigned(range.upper))
        }
    }
}
