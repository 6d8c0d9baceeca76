import PromiseCore

/// Running totals of the node table, so that `counts` scans nothing. Kept in step by every change of a node, roll-backs included
/// (`Store.memory`), and stored with each commit, so that opening a large index scans nothing either.
struct Totals: Equatable {
    var nodes = 0
    var placeholders = 0
    var localBytes: UInt64 = 0

    init() {}

    /// Scans the table.
    init(from connection: Connection) throws(Failure) {
        let sums = try connection.first(
            """
            SELECT count(*), coalesce(sum(kind = 0 AND content = 0), 0), coalesce(sum(local_bytes), 0) FROM node
            """
        ) { row in (Int(row.integer(0)), Int(row.integer(1)), row.unsigned(2)) }
        guard let sums else { preconditionFailure("a sum without groups gives one row") }
        (nodes, placeholders, localBytes) = sums
    }

    /// What the commit stored that had everything up to `sequence`; nil when the last one was made by somebody who stores none:
    /// what a crash left in the journal, or an older version.
    init?(storedAt sequence: UInt64, in connection: Connection) throws(Failure) {
        let text = try connection.first("SELECT value FROM setting WHERE key = 'totals'") { $0.text(0) }
        let numbers = text?.split(separator: " ").compactMap { UInt64($0) } ?? []
        guard numbers.count == 4, numbers[0] == sequence else { return nil }
        (nodes, placeholders, localBytes) = (Int(numbers[1]), Int(numbers[2]), numbers[3])
    }

    /// Within the transaction that commits everything up to `sequence`.
    func store(at sequence: UInt64, in connection: Connection) throws(Failure) {
        let text = "\(sequence) \(nodes) \(placeholders) \(localBytes)"
        try connection.run(
            "INSERT INTO setting VALUES ('totals', ?1) ON CONFLICT DO UPDATE SET value = excluded.value", .text(text))
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
