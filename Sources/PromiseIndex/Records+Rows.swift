import PromiseCore

// From rows to values and back, by position in the tables of `Schema`.

extension Node {
    /// A row of `SELECT * FROM node`, whose columns begin at `first`.
    init(_ row: Row, from first: CInt = 0) {
        let kind = NodeKind(rawValue: Int(row.integer(first + 1))) ?? .file
        self.init(
            id: row.node(first), kind: kind, mode: row.word(first + 7), owner: row.word(first + 8), group: row.word(first + 9),
            size: row.size(first + 10), time: row.time(first + 15),
            content: ContentState(rawValue: Int(row.integer(first + 2))) ?? .absent,
            version: row.optionalText(first + 21).map { ContentVersion($0) })
        pin = Pin(rawValue: Int(row.integer(first + 3))) ?? .automatic
        isOpenForWriting = row.flag(first + 4)
        isPopulated = row.flag(first + 5)
        durability = Durability(rawValue: Int(row.integer(first + 6))) ?? .unknown
        localBytes = row.unsigned(first + 11)
        accessTime = row.time(first + 12)
        modificationTime = row.time(first + 13)
        changeTime = row.time(first + 14)
        lastUse = row.time(first + 16)
        linkCount = row.word(first + 17)
        device = row.unsigned(first + 18)
        generation = Generation(row.unsigned(first + 19))
        edits = row.unsigned(first + 20)
        target = row.optionalBytes(first + 22)
        isAsSynced = row.flag(first + 23)
    }

    /// In the order of the table's columns.
    func bindAll(to binder: inout Binder) {
        binder.id(id)
        binder.count(kind.rawValue)
        binder.count(content.rawValue)
        binder.count(pin.rawValue)
        binder.flag(isOpenForWriting)
        binder.flag(isPopulated)
        binder.count(durability.rawValue)
        binder.word(mode)
        binder.word(owner)
        binder.word(group)
        binder.unsigned(size)
        binder.unsigned(localBytes)
        binder.time(accessTime)
        binder.time(modificationTime)
        binder.time(changeTime)
        binder.time(birthTime)
        binder.time(lastUse)
        binder.word(linkCount)
        binder.unsigned(device)
        binder.unsigned(generation.rawValue)
        binder.unsigned(edits)
        binder.optional(version?.rawValue)
        binder.optional(target)
        binder.flag(isAsSynced)
    }

    /// The columns that no index names, after the id.
    func bindUnindexed(to binder: inout Binder) {
        binder.id(id)
        binder.word(mode)
        binder.word(owner)
        binder.word(group)
        binder.unsigned(size)
        binder.unsigned(localBytes)
        binder.time(accessTime)
        binder.time(modificationTime)
        binder.time(changeTime)
        binder.time(birthTime)
        binder.unsigned(device)
        binder.unsigned(generation.rawValue)
        binder.unsigned(edits)
        binder.optional(version?.rawValue)
        binder.optional(target)
        binder.flag(isAsSynced)
    }

    /// Whether no index of the table has to change between this state and `other`.
    func hasSameIndexedColumns(as other: Node) -> Bool {
        kind == other.kind && content == other.content && pin == other.pin && isOpenForWriting == other.isOpenForWriting
            && isPopulated == other.isPopulated && durability == other.durability && lastUse == other.lastUse
            && linkCount == other.linkCount
    }
}

extension Entry {
    /// A row of `SELECT * FROM entry`.
    init(_ row: Row) {
        self.init(
            id: row.entry(0), parent: row.node(1), name: row.name(2), node: row.node(3), identifier: row.identifier(4),
            isExcluded: row.flag(5), conflictsWith: row.identifier(6))
    }

    static let columnCount: CInt = 7

    var place: Place { Place(parent: parent, name: name) }

    func bindAll(to binder: inout Binder) {
        binder.id(id)
        binder.id(parent)
        binder.name(name)
        binder.id(node)
        binder.identifier(identifier)
        binder.flag(isExcluded)
        binder.identifier(conflictsWith)
    }
}

extension Item {
    /// Eleven columns from `first` on, as `synced` and `remote` have them.
    init(_ row: Row, from first: CInt) {
        let kind = NodeKind(rawValue: Int(row.integer(first + 3))) ?? .file
        let metadata = Metadata(
            mode: row.word(first + 5), owner: row.word(first + 6), group: row.word(first + 7),
            modificationTime: row.time(first + 8))
        self.init(
            identifier: ItemIdentifier(row.text(first)), parent: row.identifier(first + 1), name: row.name(first + 2), kind: kind,
            size: row.size(first + 4), metadata: metadata, version: ContentVersion(row.text(first + 9)),
            target: row.optionalBytes(first + 10))
    }

    func bindAll(to binder: inout Binder) {
        binder.identifier(identifier)
        binder.identifier(parent)
        binder.name(name)
        binder.count(kind.rawValue)
        binder.unsigned(size)
        binder.word(metadata.mode)
        binder.word(metadata.owner)
        binder.word(metadata.group)
        binder.time(metadata.modificationTime)
        binder.text(version.rawValue)
        binder.optional(target)
    }
}

extension SyncedItem {
    /// A row of `SELECT * FROM synced`.
    init(_ row: Row) { self.init(item: Item(row, from: 0), edits: row.unsigned(11)) }
}

extension RemoteState {
    /// A row of `SELECT * FROM remote`.
    init(_ row: Row) { self = row.flag(1) ? .deleted : .present(Item(row, from: 2)) }
}

extension Pending {
    /// A row of `SELECT * FROM pending`.
    init(_ row: Row) {
        let id = row.integer(0)
        let subject: Subject = id > 0 ? .entry(EntryID(id)) : .deletion(ItemIdentifier(row.text(1)))
        self.init(subject: subject, since: row.time(2), due: row.time(3))
        attempts = Int(row.integer(4))
        error = row.optionalText(5).map { Failure.Code(rawValue: $0) ?? .inputOutput }
        message = row.optionalText(6)
    }
}

extension Change {
    /// A row of `SELECT * FROM change`.
    init(_ row: Row) {
        self.init(
            sequence: row.integer(0), kind: Kind(rawValue: Int(row.integer(1))) ?? .modified, node: row.node(2),
            parent: row.node(3), name: row.isNull(4) ? nil : row.name(4), count: Int(row.integer(5)))
    }
}
