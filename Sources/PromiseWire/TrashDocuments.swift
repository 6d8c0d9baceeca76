/// The answer to `GET /v1/trash`: what was removed, the newest first.
public struct TrashDocument: Codable, Sendable, Equatable {
    public var items: [TrashItemDocument]

    public init(items: [TrashItemDocument]) { self.items = items }
}

public struct TrashItemDocument: Codable, Sendable, Equatable {
    /// Where it was.
    public var path: String
    public var pathBytes: String
    /// `file`, `folder` or `link`.
    public var kind: String
    public var size: UInt64
    public var modificationTime: String
    /// When it was removed.
    public var removed: String
    /// False of a file that was not on this machine when it was removed: it cannot come back from
    /// here.
    public var isKept: Bool?

    public init(
        path: String, pathBytes: String, kind: String, size: UInt64, modificationTime: String,
        removed: String, isKept: Bool? = nil
    ) {
        self.path = path
        self.pathBytes = pathBytes
        self.kind = kind
        self.size = size
        self.modificationTime = modificationTime
        self.removed = removed
        self.isKept = isKept
    }
}

/// What `POST /v1/trash/restore` takes.
public struct RestoreRequest: Codable, Sendable {
    public var paths: [String]
    /// A folder in the domain that it is brought to, under a free name; nil: to where it was.
    public var to: String?
    /// Claims of this purpose are not waited for.
    public var purpose: String?
    /// What the provider keeps, whoever removed it, instead of what is kept here.
    public var atProvider: Bool?

    public init(
        paths: [String], to: String? = nil, purpose: String? = nil, atProvider: Bool? = nil
    ) {
        self.paths = paths
        self.to = to
        self.purpose = purpose
        self.atProvider = atProvider
    }
}

/// The answer to it.
public struct RestoreDocument: Codable, Sendable, Equatable {
    /// How many items came back.
    public var restored: Int
    /// Of each path that was asked for and of which something came back, where it is now.
    public var places: [RestoredPlaceDocument]
    public var failures: [ItemFailureDocument]

    public init(restored: Int, places: [RestoredPlaceDocument], failures: [ItemFailureDocument]) {
        self.restored = restored
        self.places = places
        self.failures = failures
    }
}

public struct RestoredPlaceDocument: Codable, Sendable, Equatable {
    public var path: String
    public var pathBytes: String

    public init(path: String, pathBytes: String) {
        self.path = path
        self.pathBytes = pathBytes
    }
}

/// What `POST /v1/trash/empty` takes; without a path everything goes.
public struct EmptyTrashRequest: Codable, Sendable {
    public var path: String?

    public init(path: String? = nil) { self.path = path }
}

/// The answer to it.
public struct EmptiedTrashDocument: Codable, Sendable, Equatable {
    public var emptied: Int
    public var bytesFreed: UInt64

    public init(emptied: Int, bytesFreed: UInt64) {
        self.emptied = emptied
        self.bytesFreed = bytesFreed
    }
}
