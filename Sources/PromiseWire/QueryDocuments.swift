/// A value of an attribute, or an argument of a predicate, as JSON has it. A time is text as RFC 3339 has it.
public enum WireValue: Codable, Sendable, Hashable {
    case null
    case truth(Bool)
    case integer(Int64)
    case real(Double)
    case text(String)
    case list([WireValue])

    /// Each level of lists costs as much as all above it. Documents have one, in a few of their own.
    private static let depthMax = 12

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard decoder.codingPath.count <= WireValue.depthMax else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "lists are nested too deeply")
        }
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .truth(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .real(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else {
            self = .list(try container.decode([WireValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .truth(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .real(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .list(let values): try container.encode(values)
        }
    }
}

/// `POST /v1/queries`: which items, and what is to be told of them.
public struct QueryDocument: Codable, Sendable, Equatable {
    /// In NSPredicate's string format.
    public var predicate: String
    /// For `%@` and `%K` of the predicate, in order.
    public var arguments: [WireValue]?
    /// Percent-encoded bytes of a folder's path from the root of the mount; missing: everything.
    public var scope: String?
    /// References, which stand for documents elsewhere, and nothing else; without it they are left out.
    public var external: Bool?
    /// `documents` (what is below the Documents folders of containers), `data` (what else is below their folders),
    /// `external` (as above) or `everywhere`; missing: that.
    public var area: String?
    /// With `documents` and `data`: the containers of this application; missing: of all.
    public var application: String?
    /// Goes on after everything has been told, with what changes.
    public var live: Bool?
    /// Attributes to sort by, the first one first; `-` before one turns the order around.
    public var sort: [String]?
    public var limit: Int?
    /// Attributes to be told of each item besides the usual ones.
    public var attributes: [String]?
    /// Of a live one: changes are gathered for so long before they are told, at most 3600.
    public var batchingSeconds: Double?

    public init(
        predicate: String, arguments: [WireValue]? = nil, scope: String? = nil, live: Bool? = nil, sort: [String]? = nil,
        limit: Int? = nil, attributes: [String]? = nil
    ) {
        self.predicate = predicate
        self.arguments = arguments
        self.scope = scope
        self.live = live
        self.sort = sort
        self.limit = limit
        self.attributes = attributes
    }
}

/// An item that satisfies a predicate.
public struct FoundItemDocument: Codable, Sendable, Hashable {
    /// Stays the same when the item is renamed, moved, replaced by saving it, or confirmed by the provider.
    public var id: Int64
    /// The inode number in the mount.
    public var node: UInt64
    /// From the root of the mount, for people: what is not UTF-8 is escaped.
    public var path: String
    /// The same path as percent-encoded bytes.
    public var pathBytes: String
    public var kind: String
    /// Bytes.
    public var size: UInt64
    public var modificationTime: String
    /// The provider's name for the item; nil before the provider has it.
    public var identifier: String?
    /// As in `ItemDocument`.
    public var state: String
    public var isUploaded: Bool
    /// The attributes that were asked for, by their names.
    public var attributes: [String: WireValue]?

    public init(
        id: Int64, node: UInt64, path: String, pathBytes: String, kind: String, size: UInt64, modificationTime: String,
        identifier: String?, state: String, isUploaded: Bool, attributes: [String: WireValue]?
    ) {
        self.id = id
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.kind = kind
        self.size = size
        self.modificationTime = modificationTime
        self.identifier = identifier
        self.state = state
        self.isUploaded = isUploaded
        self.attributes = attributes
    }
}

/// `GET /v1/queries`: all results at once.
public struct FoundItemsDocument: Codable, Sendable, Equatable {
    public var items: [FoundItemDocument]
    /// There are no more than these.
    public var isComplete: Bool

    public init(items: [FoundItemDocument], isComplete: Bool) {
        self.items = items
        self.isComplete = isComplete
    }
}

/// The data of an event of a query: `added`, `changed`, `removed`, `gathered` (everything has been told) or `reset` (the
/// query starts again, as when nothing had been told).
public struct QueryEventDocument: Codable, Sendable, Equatable {
    /// 1, 2, 3, … within one query.
    public var sequence: Int
    /// Of `added` and `changed`.
    public var items: [FoundItemDocument]?
    /// Of `removed`: the `id` of each.
    public var removed: [Int64]?

    public init(sequence: Int, items: [FoundItemDocument]? = nil, removed: [Int64]? = nil) {
        self.sequence = sequence
        self.items = items
        self.removed = removed
    }
}

/// `GET /v1/changes`: a part of the change feed.
public struct ChangesDocument: Codable, Sendable, Equatable {
    public var changes: [ChangeDocument]
    /// The oldest and the newest change there is; 0 when there is none.
    public var first: Int64
    public var last: Int64
    /// The feed does not reach back as far as was asked: changes are missing before the first one here.
    public var isIncomplete: Bool
    /// Whose numbers these are: those of another journal mean nothing here.
    public var journal = ""

    public init(changes: [ChangeDocument], first: Int64, last: Int64, isIncomplete: Bool) {
        self.changes = changes
        self.first = first
        self.last = last
        self.isIncomplete = isIncomplete
    }
}

/// One step of the change feed.
public struct ChangeDocument: Codable, Sendable, Equatable {
    /// Increases from change to change, across restarts.
    public var sequence: Int64
    /// `created`, `modified`, `moved`, `deleted`, `content` (came or went) or `upload` (the provider has it now).
    public var kind: String
    public var node: UInt64
    /// How many nodes it is about, one after the other from `node` on: a listing makes many at once.
    public var count: Int
    /// The folder, and the name in it, at that moment.
    public var parent: UInt64
    public var name: String?
    /// Where the node is now; nil when it has gone.
    public var path: String?
    public var pathBytes: String?
    /// Percent-encoded.
    public var nameBytes: String?
    /// Of `moved`: the folder and the name that it left.
    public var oldParent: UInt64?
    public var oldName: String?
    public var oldNameBytes: String?
    /// Of `modified`: the node that the document was, when it was saved as a new file.
    public var oldNode: UInt64?

    public init(
        sequence: Int64, kind: String, node: UInt64, count: Int, parent: UInt64, name: String?, path: String?,
        pathBytes: String?
    ) {
        self.sequence = sequence
        self.kind = kind
        self.node = node
        self.count = count
        self.parent = parent
        self.name = name
        self.path = path
        self.pathBytes = pathBytes
    }
}
