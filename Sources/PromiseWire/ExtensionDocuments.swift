// What an extension and the daemon say to each other besides content: docs/extension-openapi.yaml describes the whole.

public import FoundationEssentials

/// `GET /v1/capabilities`.
public struct ExtensionCapabilitiesDocument: Codable, Sendable, Equatable {
    /// By their names in `promisefs provider list` and `status`: `ranges`, `change-feed`, …
    public var capabilities: [String]
    /// What the storage lacks, a sentence each, for people.
    public var limitations: [String]?

    public init(capabilities: [String], limitations: [String]? = nil) {
        self.capabilities = capabilities
        self.limitations = limitations
    }
}

/// One item as the extension describes it now.
public struct ExtensionItemDocument: Codable, Sendable, Equatable {
    /// Stable and opaque, 1 to 1024 bytes; not needed where items are named by their places.
    public var identifier: String?
    /// The folder that holds it; missing for the root, and not needed where items are named by their places.
    public var parent: String?
    /// Percent-encoded bytes, as names need not be UTF-8.
    public var name: String
    /// `file`, `folder` or `link`.
    public var kind: String
    /// In bytes; may be missing for a folder and a link.
    public var size: Int64?
    /// Changes with the content or the target; may be missing for a folder.
    public var version: String?
    /// Permission bits; 0644, and 0755 of a folder, when missing.
    public var mode: UInt32?
    public var owner: UInt32?
    public var group: UInt32?
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var modified: Int64?
    /// Percent-encoded bytes of where a link points.
    public var target: String?

    public init(
        identifier: String? = nil, parent: String? = nil, name: String, kind: String, size: Int64? = nil, version: String? = nil,
        mode: UInt32? = nil, modified: Int64? = nil, target: String? = nil
    ) {
        self.identifier = identifier
        self.parent = parent
        self.name = name
        self.kind = kind
        self.size = size
        self.version = version
        self.mode = mode
        self.modified = modified
        self.target = target
    }
}

/// `GET /v1/items/{identifier}/children`: a page of a folder.
public struct ExtensionPageDocument: Codable, Sendable, Equatable {
    public var items: [ExtensionItemDocument]
    /// Where the next page begins; missing after the last.
    public var next: String?
    /// How many items could not be read, and were left out.
    public private(set) var unreadableCount = 0

    private enum CodingKeys: CodingKey { case items, next }

    public init(items: [ExtensionItemDocument], next: String? = nil) {
        self.items = items
        self.next = next
    }

    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let listed = try fields.decode([Readable<ExtensionItemDocument>].self, forKey: .items)
        items = listed.compactMap(\.value)
        unreadableCount = listed.count - items.count
        next = try fields.decodeIfPresent(String.self, forKey: .next)
    }
}

/// One of many that others describe: what cannot be read of it does not harm the rest.
struct Readable<Value: Decodable>: Decodable {
    let value: Value?

    init(from decoder: any Decoder) throws { value = try? Value(from: decoder) }
}

/// `GET /v1/anchor`: the present end of the change feed.
public struct ExtensionAnchorDocument: Codable, Sendable, Equatable {
    public var anchor: String
    public init(anchor: String) { self.anchor = anchor }
}

/// `GET /v1/objects/{kind}`: what PromiseFS keeps for itself.
public struct ExtensionObjectsDocument: Codable, Sendable, Equatable {
    public var names: [String]
    public init(names: [String]) { self.names = names }
}

/// `/v1/objects/{kind}/{name}`: one of these objects, or the version of one that was written.
public struct ExtensionObjectDocument: Codable, Sendable, Equatable {
    public var version: String
    /// In Base64; missing in the answer to a write.
    public var bytes: Data?

    public init(version: String, bytes: [UInt8]? = nil) {
        self.version = version
        self.bytes = bytes.map { Data($0) }
    }

    public func octets() -> [UInt8]? { bytes.map { Array($0) } }
}

/// `GET /v1/changes`: what happened after an anchor, or where.
public struct ExtensionChangesDocument: Codable, Sendable, Equatable {
    public var updated: [ExtensionItemDocument]?
    /// Identifiers.
    public var deleted: [String]?
    /// Identifiers of folders to be listed again.
    public var folders: [String]?
    public var anchor: String
    /// How many of `updated` could not be read, and were left out.
    public private(set) var unreadableCount = 0

    private enum CodingKeys: CodingKey { case updated, deleted, folders, anchor }

    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let told = try fields.decodeIfPresent([Readable<ExtensionItemDocument>].self, forKey: .updated)
        updated = told?.compactMap(\.value)
        unreadableCount = (told?.count ?? 0) - (updated?.count ?? 0)
        deleted = try fields.decodeIfPresent([String].self, forKey: .deleted)
        folders = try fields.decodeIfPresent([String].self, forKey: .folders)
        anchor = try fields.decode(String.self, forKey: .anchor)
    }

    public init(
        updated: [ExtensionItemDocument]? = nil, deleted: [String]? = nil, folders: [String]? = nil, anchor: String
    ) {
        self.updated = updated
        self.deleted = deleted
        self.folders = folders
        self.anchor = anchor
    }
}

/// `GET /v1/items/{identifier}/persistent-identifier`: what the item is called for good.
public struct ExtensionPersistentDocument: Codable, Sendable, Equatable {
    public var persistentIdentifier: String

    public init(persistentIdentifier: String) { self.persistentIdentifier = persistentIdentifier }
}

/// `GET /v1/persistent-identifiers/{persistent}`: the item that is called so now.
public struct ExtensionIdentifierDocument: Codable, Sendable, Equatable {
    public var identifier: String

    public init(identifier: String) { self.identifier = identifier }
}

/// The answer to `POST /v1/items/{identifier}/links`: a link by which anybody reaches the item.
public struct ExtensionLinkDocument: Codable, Sendable, Equatable {
    /// What it is revoked by; missing: it cannot be.
    public var id: String?
    /// An address of the web.
    public var url: String
    /// From the root, each name percent-encoded after a slash; missing: it is not known.
    public var path: String?
    /// When it ends, in nanoseconds since 1970-01-01 00:00 UTC; missing: when it is revoked.
    public var until: Int64?

    public init(id: String? = nil, url: String, path: String? = nil, until: Int64? = nil) {
        (self.id, self.url, self.path, self.until) = (id, url, path, until)
    }
}

/// One of what a file was before.
public struct ExtensionVersionDocument: Codable, Sendable, Equatable {
    /// What it is asked for by: 1 to 1024 visible characters of ASCII.
    public var identifier: String
    /// The item's `version` when it was that; the identifier when missing.
    public var version: String?
    /// In bytes.
    public var size: Int64
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var modified: Int64

    public init(identifier: String, version: String? = nil, size: Int64, modified: Int64) {
        (self.identifier, self.version) = (identifier, version)
        (self.size, self.modified) = (size, modified)
    }
}

/// `GET /v1/items/{identifier}/versions`: what a file was before, not what it is now.
public struct ExtensionVersionsDocument: Codable, Sendable, Equatable {
    public var versions: [ExtensionVersionDocument]

    public init(versions: [ExtensionVersionDocument]) { self.versions = versions }
}

/// One of what was removed and can come back.
public struct ExtensionBinItemDocument: Codable, Sendable, Equatable {
    /// What it is asked for by: 1 to 1024 visible characters of ASCII.
    public var identifier: String
    /// Where it was, from the root: each name percent-encoded after a slash.
    public var path: String
    /// `file`, `folder` or `link`.
    public var kind: String
    /// Of a file, in bytes.
    public var size: Int64?
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var modified: Int64?
    /// When it was removed, in the same.
    public var removed: Int64

    public init(
        identifier: String, path: String, kind: String, size: Int64? = nil, modified: Int64? = nil,
        removed: Int64
    ) {
        (self.identifier, self.path, self.kind) = (identifier, path, kind)
        (self.size, self.modified, self.removed) = (size, modified, removed)
    }
}

/// `GET /v1/removed`: what was removed, by whomever, and is kept.
public struct ExtensionBinDocument: Codable, Sendable, Equatable {
    public var items: [ExtensionBinItemDocument]

    public init(items: [ExtensionBinItemDocument]) { self.items = items }
}

/// `GET /v1/links`.
public struct ExtensionLinksDocument: Codable, Sendable, Equatable {
    public var links: [ExtensionLinkDocument]

    public init(links: [ExtensionLinkDocument]) { self.links = links }
}

/// `GET /v1/quota`, in bytes.
public struct ExtensionQuotaDocument: Codable, Sendable, Equatable {
    public var total: UInt64
    public var available: UInt64

    public init(total: UInt64, available: UInt64) {
        self.total = total
        self.available = available
    }
}

/// Why an extension did not do what it was asked for: an RFC 9457 problem document, of which only the sentence is used.
public struct ExtensionProblemDocument: Codable, Sendable, Equatable {
    public var title: String?
    /// What failed, for people.
    public var detail: String?

    public init(title: String? = nil, detail: String? = nil) {
        self.title = title
        self.detail = detail
    }
}
