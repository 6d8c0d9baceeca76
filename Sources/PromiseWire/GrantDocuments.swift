// What applications were given: grants, launches, scoped access, the audit log.

/// `POST /v1/grants`: gives an application an item, and what is below it where that is a folder.
public struct GrantRequest: Codable, Sendable, Hashable {
    /// From the root of the mount, percent-encoded bytes.
    public var path: String
    public var application: String
    /// `read` or `read-write`.
    public var rights: String
    /// When it ends, as RFC 3339 has it; missing: when it is revoked.
    public var until: String?
    /// It ends with that launch.
    public var launch: String?

    public init(
        path: String, application: String, rights: String, until: String? = nil,
        launch: String? = nil
    ) {
        self.path = path
        self.application = application
        self.rights = rights
        self.until = until
        self.launch = launch
    }
}

/// `POST /v1/grants/{id}/pass`: hands a grant on to another application, never more of it.
public struct GrantPassing: Codable, Sendable, Hashable {
    /// Below its item, as the caller has paths; missing: the item.
    public var path: String?
    public var application: String
    public var rights: String
    public var until: String?

    public init(path: String? = nil, application: String, rights: String, until: String? = nil) {
        self.path = path
        self.application = application
        self.rights = rights
        self.until = until
    }
}

/// An application's right to an item.
public struct GrantDocument: Codable, Sendable, Hashable {
    public var id: Int64
    /// `item`; `bookmark`, which opens nothing before it is resolved; or `container`.
    public var kind: String
    public var application: String
    /// What it gives now: `none` when it is over.
    public var rights: String
    /// As the caller has paths, for people; missing where the item is not there.
    public var path: String?
    /// Percent-encoded bytes.
    public var pathBytes: String?
    /// Why there is no path.
    public var reason: String?
    /// What the application sees it under, for as long as it has it.
    public var name: String
    /// All bytes of it, percent-encoded.
    public var nameBytes: String?
    public var until: String?
    /// It ends with that launch.
    public var launch: String?
    /// The grant that it was made from, and ends with.
    public var parent: Int64?
    /// The application that passed it on; missing: the owner gave it.
    public var giver: String?
    public var made: String
    /// Accesses under way that were started by a bookmark and not stopped.
    public var scopes: Int

    public init(
        id: Int64, kind: String, application: String, rights: String, path: String?,
        pathBytes: String?, reason: String?, name: String, until: String?, launch: String?,
        parent: Int64?, giver: String?, made: String, scopes: Int
    ) {
        self.id = id
        self.kind = kind
        self.application = application
        self.rights = rights
        self.path = path
        self.pathBytes = pathBytes
        self.reason = reason
        self.name = name
        self.until = until
        self.launch = launch
        self.parent = parent
        self.giver = giver
        self.made = made
        self.scopes = scopes
    }
}

/// `GET /v1/grants`, and what was revoked.
public struct GrantsDocument: Codable, Sendable, Hashable {
    public var grants: [GrantDocument]
    /// Starts of scoped access that launches which have ended never stopped, by application.
    public var unbalanced: [String: Int]

    public init(grants: [GrantDocument], unbalanced: [String: Int] = [:]) {
        self.grants = grants
        self.unbalanced = unbalanced
    }
}

/// One line of the audit log.
public struct AuditLineDocument: Codable, Sendable, Hashable {
    public var time: String
    /// `owner`, or an application.
    public var by: String
    public var call: String
    /// `admitted` or `refused`.
    public var outcome: String
    /// Whom it is about.
    public var application: String?
    public var launch: String?
    public var grant: Int64?
    public var detail: String?

    public init(
        time: String, by: String, call: String, outcome: String, application: String?,
        launch: String?, grant: Int64?, detail: String?
    ) {
        self.time = time
        self.by = by
        self.call = call
        self.outcome = outcome
        self.application = application
        self.launch = launch
        self.grant = grant
        self.detail = detail
    }
}

/// `GET /v1/grants/audit`, oldest first.
public struct AuditDocument: Codable, Sendable, Hashable {
    public var lines: [AuditLineDocument]

    public init(lines: [AuditLineDocument]) { self.lines = lines }
}

/// `POST /v1/launches`: an application begins. The launch ends with the stream of the answer.
public struct LaunchRequest: Codable, Sendable, Hashable {
    public var application: String
    /// As `LaunchBinding`; missing: told later.
    public var mountNamespace: UInt64?

    public init(application: String, mountNamespace: UInt64? = nil) {
        self.application = application
        self.mountNamespace = mountNamespace
    }
}

/// `PUT /v1/launches/{id}`: whose calls the launch's socket takes. Before that it takes none.
public struct LaunchBinding: Codable, Sendable, Hashable {
    /// The inode of the mount namespace of the sandbox (`/proc/PID/ns/mnt`), which exists for as
    /// long as the launch.
    public var mountNamespace: UInt64

    public init(mountNamespace: UInt64) { self.mountNamespace = mountNamespace }
}

/// The first event of that stream, `launched`.
public struct LaunchDocument: Codable, Sendable, Hashable {
    public var launch: String
    public var application: String
    /// The launch's own socket.
    public var socket: String

    public init(launch: String, application: String, socket: String) {
        self.launch = launch
        self.application = application
        self.socket = socket
    }
}

/// `POST /v1/scopes/{id}/stop`: how many starts are left.
public struct ScopeDocument: Codable, Sendable, Hashable {
    public var grant: Int64
    public var remaining: Int

    public init(grant: Int64, remaining: Int) {
        self.grant = grant
        self.remaining = remaining
    }
}
