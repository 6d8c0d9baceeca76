package import PromiseCore

/// What a folder is ordered by, without all the rest that is known of its items: a hundred thousand
/// of them are read while a person waits.
package struct FolderRow: Sendable {
    package var entry: EntryID
    package var name: FileName
    package var kind: NodeKind
    package var size: UInt64
    package var modificationTime: Timestamp
    /// Where it was asked for.
    package var state: StateFacts?
    /// The value of the attribute that was asked for.
    package var attribute: [UInt8]?
}

/// What an item's state follows from, as far as the index knows.
package struct StateFacts: Sendable {
    package var node: NodeID
    package var kind: NodeKind
    package var content: ContentState
    package var localBytes: UInt64
    package var isOpenForWriting: Bool
    package var isPopulated: Bool
    package var isExcluded: Bool
    package var isInConflict: Bool
    package var isPending: Bool
    package var hasFailed: Bool

    package init(_ node: Node, _ entry: Entry?, _ pending: Pending?) {
        self.node = node.id
        kind = node.kind
        content = node.content
        localBytes = node.localBytes
        isOpenForWriting = node.isOpenForWriting
        isPopulated = node.isPopulated
        isExcluded = entry?.isExcluded == true
        isInConflict = entry?.conflictsWith != nil
        isPending = pending != nil
        hasFailed = pending?.error != nil
    }

    /// Nine columns from `first` on, as `FolderRows` asks for them.
    fileprivate init(_ row: Row, _ kind: NodeKind, from first: CInt) {
        self.kind = kind
        node = row.node(first)
        content = ContentState(rawValue: Int(row.integer(first + 1))) ?? .absent
        localBytes = row.unsigned(first + 2)
        isOpenForWriting = row.flag(first + 3)
        isPopulated = row.flag(first + 4)
        isExcluded = row.flag(first + 5)
        isInConflict = row.flag(first + 6)
        isPending = row.flag(first + 7)
        hasFailed = row.flag(first + 8)
    }
}

package enum FolderRows {
    /// What is wanted besides what every row has: in one question, not in one for each row.
    package enum Extra: Sendable {
        case nothing
        case state
        /// An extended attribute.
        case attribute([UInt8])
    }

    private static let plain: StaticString = """
        SELECT entry.id, entry.name, node.kind, node.size, node.modification_time
        FROM entry JOIN node ON node.id = entry.node
        WHERE entry.parent = ?1 AND entry.name > ?2 ORDER BY entry.name LIMIT ?3
        """
    private static let withState: StaticString = """
        SELECT entry.id, entry.name, node.kind, node.size, node.modification_time,
            node.id, node.content, node.local_bytes, node.is_open_for_writing, node.is_populated,
            entry.is_excluded, entry.conflicts_with IS NOT NULL,
            pending.id IS NOT NULL, pending.error IS NOT NULL
        FROM entry JOIN node ON node.id = entry.node LEFT JOIN pending ON pending.id = entry.id
        WHERE entry.parent = ?1 AND entry.name > ?2 ORDER BY entry.name LIMIT ?3
        """
    private static let withAttribute: StaticString = """
        SELECT entry.id, entry.name, node.kind, node.size, node.modification_time, attribute.value
        FROM entry JOIN node ON node.id = entry.node
            LEFT JOIN attribute ON attribute.node = node.id AND attribute.name = ?4
        WHERE entry.parent = ?1 AND entry.name > ?2 ORDER BY entry.name LIMIT ?3
        """

    /// At most `limit` of them, after a name, or the first ones.
    package static func rows(
        in parent: NodeID, after name: FileName?, limit: Int, _ extra: Extra = .nothing,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> [FolderRow] {
        try transaction.store.flushNodes()
        var values: [SQLValue] = [.id(parent), .bytes(name?.bytes ?? []), .count(limit)]
        let question: StaticString
        switch extra {
        case .nothing: question = plain
        case .state: question = withState
        case .attribute(let name):
            question = withAttribute
            values.append(.bytes(name))
        }
        var rows: [FolderRow] = []
        try transaction.connection.forEach(question, values) { row in
            var result = FolderRow(
                entry: EntryID(row.integer(0)), name: row.name(1),
                kind: NodeKind(rawValue: Int(row.integer(2))) ?? .file, size: row.size(3),
                modificationTime: row.time(4))
            switch extra {
            case .nothing: break
            case .state: result.state = StateFacts(row, result.kind, from: 5)
            case .attribute: result.attribute = row.optionalBytes(5)
            }
            rows.append(result)
            return true
        }
        return rows
    }
}
