import PromiseCore

/// Running totals of the tables of nodes and of what was removed, so that `counts` scans nothing.
/// Summed up once when the index is opened, then kept in step by every change, roll-backs included
/// (`Store.memory`).
struct Totals: Equatable {
    var nodes = 0
    var placeholders = 0
    var localBytes: UInt64 = 0
    /// Of the table of what was removed and can come back.
    var removedCount = 0
    /// Those of them that are only told of.
    var removedMentioned = 0
    var removedBytes: UInt64 = 0

    init() {}

    /// Scans the tables.
    init(from connection: Connection) throws(Failure) {
        let sums = try connection.first(
            """
            SELECT count(*), coalesce(sum(kind = 0 AND content = 0), 0), coalesce(sum(local_bytes), 0) FROM node
            """
        ) { row in (Int(row.integer(0)), Int(row.integer(1)), row.unsigned(2)) }
        guard let sums else { preconditionFailure("a sum without groups gives one row") }
        (nodes, placeholders, localBytes) = sums
        let removed = try connection.first(
            "SELECT count(*), coalesce(sum(node = 0), 0), coalesce(sum(local_bytes), 0) FROM removed"
        ) { row in (Int(row.integer(0)), Int(row.integer(1)), row.unsigned(2)) }
        (removedCount, removedMentioned, removedBytes) = removed ?? (0, 0, 0)
    }

    mutating func add(_ node: Node) {
        nodes += 1
        placeholders += Totals.isPlaceholder(node) ? 1 : 0
        localBytes &+= node.localBytes
    }

    mutating func remove(_ node: Node) {
        nodes -= 1
        placeholders -= Totals.isPlaceholder(node) ? 1 : 0
        localBytes &-= node.localBytes
        assert(nodes >= 1 && placeholders >= 0, "totals never fall below the root: \(self)")
    }

    private static func isPlaceholder(_ node: Node) -> Bool { node.kind == .file && node.content == .absent }
}
