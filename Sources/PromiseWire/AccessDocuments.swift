// What applications keep in a domain besides values: containers.

/// `POST /v1/containers`: gives an application a folder of its own, or changes what is said of it.
public struct ContainerRequest: Codable, Sendable, Hashable {
    /// As `com.example.editor`.
    public var application: String
    /// What people call it; missing: as it is, or the application's identifier.
    public var name: String?
    /// Others may see what is in `Documents/`; missing: as it is, or false.
    public var isPublic: Bool?

    public init(application: String, name: String? = nil, isPublic: Bool? = nil) {
        self.application = application
        self.name = name
        self.isPublic = isPublic
    }
}

/// An application's own folder.
public struct ContainerDocument: Codable, Sendable, Hashable {
    public var application: String
    public var name: String
    public var isPublic: Bool
    /// From the root of the mount, for people; missing when the folder is not there.
    public var path: String?
    /// Percent-encoded bytes.
    public var pathBytes: String?
    /// The folder in it that people see, as `path`.
    public var documentsPath: String?
    /// What the provider calls the folder; missing before it has it.
    public var identifier: String?
    /// Why there is no path.
    public var reason: String?
    /// The provider has the record, so that other machines know of it.
    public var isSent: Bool

    public init(
        application: String, name: String, isPublic: Bool, path: String?, pathBytes: String?,
        documentsPath: String?, identifier: String?, reason: String?, isSent: Bool
    ) {
        self.application = application
        self.name = name
        self.isPublic = isPublic
        self.path = path
        self.pathBytes = pathBytes
        self.documentsPath = documentsPath
        self.identifier = identifier
        self.reason = reason
        self.isSent = isSent
    }
}

/// `GET /v1/containers`: those that the caller may see, and whether the domain can be used now.
public struct ContainersDocument: Codable, Sendable, Hashable {
    public var domain: String
    /// As given to `mount`, with the name of the account where it has one.
    public var provider: String
    /// What the provider calls the root: another one is another account.
    public var account: String
    public var isReachable: Bool
    /// Why it is not.
    public var connectionMessage: String?
    /// Why records are not exchanged with other machines.
    public var trouble: String?
    public var containers: [ContainerDocument]

    public init(
        domain: String, provider: String, account: String, isReachable: Bool,
        connectionMessage: String?, trouble: String?, containers: [ContainerDocument]
    ) {
        self.domain = domain
        self.provider = provider
        self.account = account
        self.isReachable = isReachable
        self.connectionMessage = connectionMessage
        self.trouble = trouble
        self.containers = containers
    }
}
