package import PromiseCore

/// A file, folder or link that a program has removed, and of which the content stays in the store
/// for a while: `node` and `generation` name its content file, although no node may have this
/// number any more.
package struct RemovedItem: Sendable {
    /// By when it was removed: of two the greater one was later. Not used again while a later one
    /// is kept.
    package var id: Int64 = 0
    package var node: NodeID
    package var generation: Generation
    package var kind: NodeKind
    /// Another file took its name.
    package var isReplaced = false
    /// A power cut leaves all of the content.
    package var isDurable: Bool
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    package var size: UInt64
    /// Bytes of disk the content file takes.
    package var localBytes: UInt64
    package var modificationTime: Timestamp
    package var removalTime: Timestamp
    /// From the root of the mount, as it was then.
    package var path: [FileName]
    /// The provider's, if it had one.
    package var version: ContentVersion?
    /// Of a link.
    package var target: [UInt8]?
    package var attributes: [ExtendedAttribute] = []

    /// False of a file whose content was not here: it is told of, and cannot come back.
    package var isKept: Bool { node != RemovedItem.nowhere }
    private static let nowhere = NodeID(0)

    package struct ExtendedAttribute: Hashable, Sendable {
        package var name: [UInt8]
        package var value: [UInt8]

        package init(name: [UInt8], value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    package init(_ node: Node, at path: [FileName], removed: Timestamp) {
        self.node = node.id
        generation = node.generation
        kind = node.kind
        isDurable = node.durability.isWhole
        (mode, owner, group) = (node.mode, node.owner, node.group)
        size = node.size
        localBytes = node.kind == .file ? node.localBytes : 0
        modificationTime = node.modificationTime
        removalTime = removed
        self.path = path
        version = node.version
        target = node.target
    }

    /// The same of what is not kept.
    fileprivate var mentioned: RemovedItem {
        var mentioned = self
        (mentioned.node, mentioned.localBytes, mentioned.isDurable) = (RemovedItem.nowhere, 0, true)
        return mentioned
    }

    fileprivate init(_ row: Row) {
        id = row.integer(0)
        node = row.node(1)
        generation = Generation(row.unsigned(2))
        kind = NodeKind(rawValue: Int(row.integer(3))) ?? .file
        isReplaced = row.flag(4)
        isDurable = row.flag(5)
        (mode, owner, group) = (row.word(6), row.word(7), row.word(8))
        size = row.size(9)
        localBytes = row.unsigned(10)
        modificationTime = row.time(11)
        removalTime = row.time(12)
        path = row.bytes(13).split(separator: 0x2F).map { FileName(trusted: Array($0)) }
        version = row.optionalText(14).map { ContentVersion($0) }
        target = row.optionalBytes(15)
        attributes = row.optionalBytes(16).map(RemovedItem.decode) ?? []
    }

    fileprivate var pathBytes: [UInt8] { Array(path.map(\.bytes).joined(separator: [0x2F])) }

    /// Each with the lengths of its name and of its value before it, four bytes each.
    fileprivate var attributeBytes: [UInt8]? {
        if attributes.isEmpty { return nil }
        var bytes: [UInt8] = []
        for attribute in attributes {
            for part in [attribute.name, attribute.value] {
                bytes += (0..<4).map { UInt8(truncatingIfNeeded: part.count >> ($0 * 8)) }
                bytes += part
            }
        }
        return bytes
    }

    private static func decode(_ bytes: [UInt8]) -> [ExtendedAttribute] {
        var rest = bytes[...]
        func part() -> [UInt8]? {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        var result: [ExtendedAttribute] = []
        while let name = part(), let value = part() {
            result.append(ExtendedAttribute(name: name, value: value))
        }
        return result
    }
}

/// What was removed here and can come back. A row goes in the transaction that lets its content go.
package enum RemovedRows {
    /// So many that are not kept are told of, and so many of them go at once.
    private static let mentionedCountMax = 1_000
    private static let mentionedPart = 100

    /// Tells of one that is not kept; of too many the oldest go.
    package static func mention(
        _ item: RemovedItem, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try insert(item.mentioned, transaction)
        guard transaction.store.memory.totals.removedMentioned > mentionedCountMax else { return }
        let oldest = try transaction.connection.all(
            "SELECT * FROM removed WHERE node = 0 ORDER BY id LIMIT ?1", .count(mentionedPart)
        ) { RemovedItem($0) }
        for item in oldest { try delete(item, transaction) }
    }

    /// The id given is ignored; returns the one that it has now.
    @discardableResult
    package static func insert(_ item: RemovedItem, _ transaction: borrowing Transaction)
        throws(Failure) -> Int64
    {
        let last = try transaction.connection.first("SELECT max(id) FROM removed") { $0.integer(0) }
        let id = (last ?? 0) + 1
        try transaction.store.change(
            "INSERT INTO removed VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
            .integer(id), .id(item.node), .unsigned(item.generation.rawValue),
            .count(item.kind.rawValue),
            .flag(item.isReplaced), .flag(item.isDurable), .integer(Int64(item.mode)),
            .integer(Int64(item.owner)),
            .integer(Int64(item.group)), .unsigned(item.size), .unsigned(item.localBytes),
            .time(item.modificationTime),
            .time(item.removalTime), .bytes(item.pathBytes), .optional(item.version?.rawValue),
            .optional(item.target),
            .optional(item.attributeBytes))
        transaction.store.memory.totals.removedCount += 1
        if !item.isKept { transaction.store.memory.totals.removedMentioned += 1 }
        transaction.store.memory.totals.removedBytes &+= item.localBytes
        return id
    }

    /// How many are kept, and what their contents take of the disk. Nothing is read for it.
    package static func totals(_ transaction: borrowing Transaction) -> (count: Int, bytes: UInt64)
    {
        let totals = transaction.store.memory.totals
        return (totals.removedCount - totals.removedMentioned, totals.removedBytes)
    }

    /// Those that were removed first.
    package static func oldest(
        limit: Int, onlyKept: Bool = false, _ transaction: borrowing Transaction
    ) throws(Failure) -> [RemovedItem] {
        try transaction.connection.all(
            "SELECT * FROM removed WHERE node <> 0 OR ?2 ORDER BY id LIMIT ?1", .count(limit), .flag(!onlyKept)
        ) { RemovedItem($0) }
    }

    /// What was at this path or below it, the newest first; all for the root.
    package static func all(
        below path: [FileName] = [], _ transaction: borrowing Transaction
    ) throws(Failure) -> [RemovedItem] {
        let prefix = Array(path.map(\.bytes).joined(separator: [0x2F]))
        var result: [RemovedItem] = []
        try transaction.connection.forEach("SELECT * FROM removed ORDER BY id DESC") { row in
            let isMeant = row.withBytes(13) { bytes in
                prefix.isEmpty
                    || bytes.starts(with: prefix)
                        && (bytes.count == prefix.count || bytes[prefix.count] == 0x2F)
            }
            if isMeant { result.append(RemovedItem(row)) }
            return true
        }
        return result
    }

    package static func item(_ id: Int64, _ transaction: borrowing Transaction) throws(Failure)
        -> RemovedItem?
    {
        try transaction.connection.first("SELECT * FROM removed WHERE id = ?1", .integer(id)) {
            RemovedItem($0)
        }
    }

    /// The file whose content this node's file is.
    package static func file(of node: NodeID, _ transaction: borrowing Transaction) throws(Failure)
        -> RemovedItem?
    {
        if transaction.store.memory.totals.removedCount == 0 { return nil }
        return try transaction.connection.first(
            "SELECT * FROM removed WHERE kind = 0 AND node = ?1", .id(node)
        ) {
            RemovedItem($0)
        }
    }

    /// The last program that had a removed file open has closed it: what the file is now is what is
    /// kept. False when it is not kept.
    package static func noteLastClose(of node: Node, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool
    {
        guard node.kind == .file, let item = try file(of: node.id, transaction) else {
            return false
        }
        guard node.content == .whole else {
            try delete(item, transaction)
            return false
        }
        try transaction.store.change(
            """
            UPDATE removed SET generation = ?2, size = ?3, local_bytes = ?4, modification_time = ?5, is_durable = ?6
            WHERE id = ?1
            """, .integer(item.id), .unsigned(node.generation.rawValue), .unsigned(node.size),
            .unsigned(node.localBytes),
            .time(node.modificationTime), .flag(node.durability.isWhole))
        transaction.store.memory.totals.removedBytes &-= item.localBytes
        transaction.store.memory.totals.removedBytes &+= node.localBytes
        return true
    }

    /// Forgets one that is there. Its content file goes with it unless something else has it.
    package static func delete(_ item: RemovedItem, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        guard
            try transaction.store.change("DELETE FROM removed WHERE id = ?1", .integer(item.id)) > 0
        else { return }
        transaction.store.memory.totals.removedCount -= 1
        if !item.isKept { transaction.store.memory.totals.removedMentioned -= 1 }
        transaction.store.memory.totals.removedBytes &-= item.localBytes
    }

    /// As `delete`. Returns the content file that is to go after the commit; nil where there is
    /// none, or a program has it open still, with whose last close it goes.
    package static func drop(
        _ item: RemovedItem, _ transaction: borrowing Transaction
    ) throws(Failure) -> (node: NodeID, generation: Generation)? {
        try delete(item, transaction)
        guard item.kind == .file, item.isKept, try transaction.node(item.node) == nil else { return nil }
        return (item.node, item.generation)
    }
}
