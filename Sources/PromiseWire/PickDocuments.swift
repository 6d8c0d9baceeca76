// An application asks a person for documents; the person is shown a picker outside of it.

/// `POST /v1/picks`, on the socket of a launch.
public struct PickRequest: Codable, Sendable, Hashable {
    /// `open`, `import`, `create`, `save`, `export` or `move`.
    public var mode: String
    /// Uniform type identifiers and MIME types; missing: all.
    public var types: [String]?
    public var multiple: Bool?
    public var folders: Bool?
    /// What is made is called so at first.
    public var name: String?
    /// What is exported or moved, as the application has paths.
    public var sources: [String]?

    public init(
        mode: String, types: [String]? = nil, multiple: Bool? = nil, folders: Bool? = nil,
        name: String? = nil, sources: [String]? = nil
    ) {
        self.mode = mode
        self.types = types
        self.multiple = multiple
        self.folders = folders
        self.name = name
        self.sources = sources
    }
}

/// Event `asked` of `GET /v1/picks`; of `withdrawn` only the number counts.
public struct PickAsked: Codable, Sendable, Hashable {
    public var id: UInt64
    public var application: String
    public var launch: String
    /// Its sources are paths of the mount.
    public var request: PickRequest

    public init(id: UInt64, application: String, launch: String, request: PickRequest) {
        self.id = id
        self.application = application
        self.launch = launch
        self.request = request
    }
}

/// `POST /v1/picks/{id}/answer`: what the person has picked.
public struct PickAnswer: Codable, Sendable, Hashable {
    /// Percent-encoded bytes from the root of the mount.
    public var paths: [String]
    /// Nothing is picked, and nothing has gone wrong.
    public var cancelled: Bool
    public var problem: String?

    public init(paths: [String] = [], cancelled: Bool = false, problem: String? = nil) {
        self.paths = paths
        self.cancelled = cancelled
        self.problem = problem
    }
}

/// Event `done` of `POST /v1/picks`.
public struct PickedDocuments: Codable, Sendable, Hashable {
    public struct Picked: Codable, Sendable, Hashable {
        /// Below the view, for people.
        public var path: String
        /// Percent-encoded bytes.
        public var pathBytes: String

        public init(path: String, pathBytes: String) {
            self.path = path
            self.pathBytes = pathBytes
        }
    }

    public var picked: [Picked]
    public var cancelled: Bool

    public init(picked: [Picked], cancelled: Bool) {
        self.picked = picked
        self.cancelled = cancelled
    }
}

/// `GET /v1/picker-page/item`: what a provider's page has picked.
public struct PagePick: Codable, Sendable, Hashable {
    /// From the root of the mount, for people.
    public var path: String
    /// Percent-encoded bytes.
    public var pathBytes: String
    public var isFolder: Bool

    public init(path: String, pathBytes: String, isFolder: Bool) {
        self.path = path
        self.pathBytes = pathBytes
        self.isFolder = isFolder
    }
}
