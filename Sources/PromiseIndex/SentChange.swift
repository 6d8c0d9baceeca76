package import PromiseCore

/// Names one row of what was sent, for as long as the database lives.
package struct SentID: Hashable, Sendable {
    package let rawValue: Int64
    init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// What the provider was told and has not answered: what the item looks like if it was carried out.
///
/// A call may take effect without its outcome being stored. Until the outcome is stored, an item that looks like this is our
/// own doing and no news.
package struct SentChange: Hashable, Sendable {
    package var entry: EntryID
    /// The item's identifier before; nil for a new one.
    package var item: ItemIdentifier?
    package var isMove: Bool
    /// Where the item is then.
    package var parent: ItemIdentifier
    package var name: FileName
    package var kind: NodeKind
    /// The node's edits that were sent.
    package var edits: UInt64
    package var size: UInt64
    package var modificationTime: Timestamp
    /// The version that the content stays at; nil when other content was sent.
    package var base: ContentVersion?
    /// Of a link.
    package var target: [UInt8]?
    /// Of the content that was sent, where it is known.
    package var digest: String?
    /// With mode, owner and group. If not, those that the item has then are others'.
    package var tellsRights: Bool

    package init(
        entry: EntryID, item: ItemIdentifier?, isMove: Bool, parent: ItemIdentifier, name: FileName, kind: NodeKind,
        edits: UInt64, size: UInt64, modificationTime: Timestamp, base: ContentVersion?, target: [UInt8]?,
        tellsRights: Bool = true
    ) {
        self.entry = entry
        self.item = item
        self.isMove = isMove
        self.parent = parent
        self.name = name
        self.kind = kind
        self.edits = edits
        self.size = size
        self.modificationTime = modificationTime
        self.base = base
        self.target = target
        self.tellsRights = tellsRights
    }
}

extension SentChange {
    /// A row of `SELECT * FROM sent`.
    init(_ row: Row) {
        self.init(
            entry: row.entry(1), item: row.identifier(2), isMove: row.flag(3), parent: ItemIdentifier(row.text(4)),
            name: row.name(5), kind: NodeKind(rawValue: Int(row.integer(6))) ?? .file, edits: row.unsigned(7),
            size: row.unsigned(8), modificationTime: row.time(9), base: row.optionalText(10).map { ContentVersion($0) },
            target: row.optionalBytes(11), tellsRights: row.flag(13))
        digest = row.optionalText(12)
    }

    func bindAll(to binder: inout Binder) {
        binder.id(entry)
        binder.identifier(item)
        binder.flag(isMove)
        binder.identifier(parent)
        binder.name(name)
        binder.count(kind.rawValue)
        binder.unsigned(edits)
        binder.unsigned(size)
        binder.time(modificationTime)
        binder.optional(base?.rawValue)
        binder.optional(target)
        binder.optional(digest)
        binder.flag(tellsRights)
    }
}
