// What applications keep in a domain besides values: containers, references, bookmarks.

/// `POST /v1/containers`: gives an application a folder of its own, or changes what is said of it.
public struct ContainerRequest: Codable, Sendable, Hashable {
    /// As `com.example.editor`.
    public var application: String
    /// What people call it; missing: as it is, or the application's identifier.
    public var name: String?
    /// Others may see what is in `Documents/`; missing: as it is, or false.
    public var isPublic: Bool?
    /// A PNG of 64 KiB at most, in Base64; missing: as it is.
    public var icon: String?

    public init(application: String, name: String? = nil, isPublic: Bool? = nil, icon: String? = nil) {
        self.application = application
        self.name = name
        self.isPublic = isPublic
        self.icon = icon
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
    /// All bytes of it, percent-encoded.
    public var documentsPathBytes: String?
    /// What the provider calls the folder; missing before it has it.
    public var identifier: String?
    /// Why there is no path.
    public var reason: String?
    /// The provider has the record, so that other machines know of it.
    public var isSent: Bool
    /// `GET /v1/containers/icon` has it.
    public var hasIcon: Bool?

    public init(
        application: String, name: String, isPublic: Bool, path: String?, pathBytes: String?,
        documentsPath: String?, identifier: String?, reason: String?, isSent: Bool,
        hasIcon: Bool? = nil
    ) {
        self.hasIcon = hasIcon
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

/// An event of `GET /v1/availability/events`: whether the domain can be used now, and whose it is.
public struct AvailabilityDocument: Codable, Sendable, Hashable {
    public var domain: String
    public var provider: String
    /// What the provider calls the root: another one is another account.
    public var account: String
    public var isReachable: Bool
    /// Why it is not.
    public var connectionMessage: String?

    public init(
        domain: String, provider: String, account: String, isReachable: Bool,
        connectionMessage: String?
    ) {
        self.domain = domain
        self.provider = provider
        self.account = account
        self.isReachable = isReachable
        self.connectionMessage = connectionMessage
    }
}

/// `POST /v1/references`: makes a link that stands for a document.
public struct ReferenceRequest: Codable, Sendable, Hashable {
    /// From the root of the mount, percent-encoded bytes: the document; missing where `record` is given.
    public var target: String?
    /// Where the link is to be, as `target`; of a folder, in it.
    public var path: String
    /// Of a document in another domain: what that says of it (`GET /v1/references/card`).
    public var record: String?

    public init(target: String? = nil, path: String, record: String? = nil) {
        self.target = target
        self.path = path
        self.record = record
    }
}

/// `GET /v1/references/card`: what a reference in another domain says of a document of this one.
public struct ReferenceCardDocument: Codable, Sendable, Hashable {
    public var record: String

    public init(record: String) { self.record = record }
}

/// `POST /v1/references/lead`: asks for the document that a reference in another domain stands for.
public struct ReferenceLeadRequest: Codable, Sendable, Hashable {
    public var record: String
    /// What an earlier answer said.
    public var bound: String?

    public init(record: String, bound: String?) {
        self.record = record
        self.bound = bound
    }
}

/// Where it is now.
public struct ReferenceLeadDocument: Codable, Sendable, Hashable {
    /// False: the document is of another storage than this domain's, and nothing else is said.
    public var isHere: Bool
    /// `found`, `unknown`, `deleted` or `replaced`.
    public var state: String?
    /// From the root of this domain's mount, percent-encoded bytes.
    public var pathBytes: String?
    /// What a reference that is made now is to say of it.
    public var record: String?
    /// To be given with the next question; of use on this machine alone.
    public var bound: String?

    public init(
        isHere: Bool, state: String? = nil, pathBytes: String? = nil, record: String? = nil,
        bound: String? = nil
    ) {
        self.isHere = isHere
        self.state = state
        self.pathBytes = pathBytes
        self.record = record
        self.bound = bound
    }
}

/// A link that stands for a document and follows it.
public struct ReferenceDocument: Codable, Sendable, Hashable {
    /// From the root of the mount, for people, as `target`.
    public var path: String
    /// Percent-encoded bytes, as `targetBytes`.
    public var pathBytes: String
    /// Where the document is, or was.
    public var target: String
    public var targetBytes: String
    /// Of the document: `file`, `folder` or `link`.
    public var kind: String
    /// `found`, `unknown`, `deleted`, `replaced`; of another domain `notMounted` or `silent`, too.
    public var state: String
    /// Why it leads nowhere.
    public var reason: String?
    /// What the provider calls the document.
    public var identifier: String?
    /// Of a document in another domain: what that is called here, where it is mounted; `target` is from
    /// its root.
    public var domain: String?
    /// Where the document of another domain is on this machine: an absolute path, percent-encoded bytes.
    public var place: String?

    public init(
        path: String, pathBytes: String, target: String, targetBytes: String, kind: String,
        state: String, reason: String?, identifier: String?
    ) {
        self.path = path
        self.pathBytes = pathBytes
        self.target = target
        self.targetBytes = targetBytes
        self.kind = kind
        self.state = state
        self.reason = reason
        self.identifier = identifier
    }
}

/// `GET /v1/references`: below a folder, by path.
public struct ReferencesDocument: Codable, Sendable, Hashable {
    public var references: [ReferenceDocument]

    public init(references: [ReferenceDocument]) { self.references = references }
}

/// `POST /v1/bookmarks`: notes an item, to find it again.
/// `POST /v1/views`.
public struct ViewRequest: Codable, Sendable, Hashable {
    public var application: String
    /// It is ended when the domain is to be unmounted, and holds nobody up.
    public var isForSession: Bool?
    /// The calling process comes for it, or what it becomes: the launch ends when that has ended.
    public var isOfCaller: Bool?

    public init(application: String, isForSession: Bool? = nil, isOfCaller: Bool? = nil) {
        self.application = application
        self.isForSession = isForSession
        self.isOfCaller = isOfCaller
    }
}

/// A launch of an application that has a view to come for.
public struct ViewDocument: Codable, Sendable, Hashable {
    public var launch: String
    /// Where the FUSE device of the view is handed over, within 30 seconds, as `promisefs-view` does.
    public var handover: String
    /// Where the application asks for what it was given.
    public var socket: String?

    public init(launch: String, handover: String, socket: String?) {
        self.launch = launch
        self.handover = handover
        self.socket = socket
    }
}

public struct BookmarkRequest: Codable, Sendable, Hashable {
    /// From the root of the mount, percent-encoded bytes.
    public var path: String
    /// Who may resolve it; missing: the owner, without saying for whom.
    public var application: String?
    public var isReadOnly: Bool?
    /// What it is to carry, by the names of docs/QUERIES.md; missing: name, type, size, date, path.
    public var attributes: [String]?

    public init(
        path: String, application: String? = nil, isReadOnly: Bool? = nil,
        attributes: [String]? = nil
    ) {
        self.path = path
        self.application = application
        self.isReadOnly = isReadOnly
        self.attributes = attributes
    }
}

/// A bookmark: opaque.
public struct BookmarkDocument: Codable, Sendable, Hashable {
    /// One line of base64url.
    public var bookmark: String

    public init(bookmark: String) { self.bookmark = bookmark }
}

/// `POST /v1/bookmarks/resolve`.
public struct BookmarkResolution: Codable, Sendable, Hashable {
    public var bookmark: String
    /// As it was made for.
    public var application: String?

    public init(bookmark: String, application: String? = nil) {
        self.bookmark = bookmark
        self.application = application
    }
}

/// What a bookmark leads to.
public struct ResolvedBookmarkDocument: Codable, Sendable, Hashable {
    /// From the root of the mount, for people; missing when it leads nowhere.
    public var path: String?
    /// Percent-encoded bytes.
    public var pathBytes: String?
    public var node: UInt64?
    /// `file`, `folder` or `link`.
    public var kind: String
    public var isReadOnly: Bool
    /// It does not say what is now, or leads nowhere.
    public var isStale: Bool
    /// Why it is stale.
    public var reason: String?
    /// To be kept in its place.
    public var renewed: String?
    /// As they are now, or, where it leads nowhere, as they were.
    public var attributes: [String: WireValue]
    /// Of an application: the grant of its launch that this has started, to be stopped once.
    public var scope: Int64?

    public init(
        path: String?, pathBytes: String?, node: UInt64?, kind: String, isReadOnly: Bool,
        isStale: Bool, reason: String?, renewed: String?, attributes: [String: WireValue],
        scope: Int64? = nil
    ) {
        self.scope = scope
        self.path = path
        self.pathBytes = pathBytes
        self.node = node
        self.kind = kind
        self.isReadOnly = isReadOnly
        self.isStale = isStale
        self.reason = reason
        self.renewed = renewed
        self.attributes = attributes
    }
}
