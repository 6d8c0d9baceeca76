/// The limits of a request.
public enum RequestLimit {
    public static let bodyByteCountMax = 1 << 20
    public static let pathCountMax = 10_000
    public static let thumbnailByteCountMax = 8 << 20
    /// Of a value of an application, as JSON has it.
    public static let valueByteCountMax = 8 << 20
}

/// `POST /v1/items/fetch`, `/evict`, `/pin` and `/values`. Paths are percent-encoded bytes from the root of the mount; `/` is
/// the root.
public struct ItemsRequest: Codable, Sendable, Equatable {
    public var paths: [String]
    /// `pinned`, `online-only` or `automatic`; for `/pin` only.
    public var pin: String?
    /// Which attributes, by their names; missing: all. For `/values` only.
    public var keys: [String]?
    /// Claims of this purpose are not waited for. For `/revert` and `/evict` only.
    public var purpose: String?

    public init(
        paths: [String], pin: String? = nil, keys: [String]? = nil, purpose: String? = nil
    ) {
        self.paths = paths
        self.pin = pin
        self.keys = keys
        self.purpose = purpose
    }
}

/// `POST /v1/items/versions`: something is to be done with versions that a conflict has left.
public struct VersionsRequest: Codable, Sendable, Equatable {
    /// Of the document; percent-encoded bytes from the root of the mount.
    public var path: String
    /// `replace`: the version becomes the document's content, and what the document was goes. `remove`: it goes.
    /// `markResolved`: it stays as a document of its own.
    public var action: String
    /// The version's `identifier`; missing: all unresolved ones, which cannot all replace the document.
    public var version: String?
    /// Claims and presenters of this purpose are not asked and not waited for.
    public var purpose: String?
    /// Of the versions when this was decided: what was written since is never destroyed. Missing: as they are when
    /// the request comes.
    public var states: [String]?

    public init(
        path: String, action: String, version: String? = nil, purpose: String? = nil, states: [String]? = nil
    ) {
        self.states = states
        self.path = path
        self.action = action
        self.version = version
        self.purpose = purpose
    }
}

/// `POST /v1/sync`.
public struct SyncRequest: Codable, Sendable, Equatable {
    /// Percent-encoded bytes; missing: the whole domain.
    public var path: String?
    public var wait: Bool?
    public var timeoutSeconds: Double?

    public init(path: String? = nil, wait: Bool? = nil, timeoutSeconds: Double? = nil) {
        self.path = path
        self.wait = wait
        self.timeoutSeconds = timeoutSeconds
    }
}

/// `POST /v1/verify`.
public struct VerifyRequest: Codable, Sendable, Equatable {
    public var repair: Bool?
    /// Ask the provider, too.
    public var provider: Bool?

    public init(repair: Bool? = nil, provider: Bool? = nil) {
        self.repair = repair
        self.provider = provider
    }
}

/// `POST /v1/unmount`.
/// What of a domain's limits is to be another one: a decimal number of bytes, or of bytes a second; or `none`. Missing: as it is.
public struct LimitsRequest: Codable, Sendable, Equatable {
    public static let none = "none"
    /// Of the cache: as the domain was mounted.
    public static let asConfigured = "default"

    public var cache: String?
    public var upload: String?
    public var download: String?

    public init(cache: String? = nil, upload: String? = nil, download: String? = nil) {
        self.cache = cache
        self.upload = upload
        self.download = download
    }
}

public struct UnmountRequest: Codable, Sendable, Equatable {
    public var wait: Bool?
    public var timeoutSeconds: Double?
    public var lazy: Bool?

    public init(wait: Bool? = nil, timeoutSeconds: Double? = nil, lazy: Bool? = nil) {
        self.wait = wait
        self.timeoutSeconds = timeoutSeconds
        self.lazy = lazy
    }
}
