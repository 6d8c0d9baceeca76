/// `GET /v1/status`: one domain.
public struct StatusDocument: Codable, Sendable, Equatable {
    public var name: String
    /// As given to `mount`: `folder:/path`.
    public var provider: String
    public var capabilities: [String]
    /// What the provider lacks and how that is met, a sentence each.
    public var limitations: [String]?
    /// For people: what is not UTF-8 is escaped.
    public var mountPoint: String
    /// Percent-encoded bytes.
    public var mountPointBytes: String
    public var stateFolder: String
    public var stateFolderBytes: String
    public var processID: Int32
    /// `online`, `offline`, `connecting` or `failing`.
    public var connection: String
    /// Why it is not online.
    public var connectionMessage: String?
    /// `device` or `io_uring`.
    public var transport: String
    /// Why the transport is the device.
    public var transportMessage: String?
    /// How many requests the kernel has sent since the mount, by its name for them: `lookup`, `open`, …
    public var requests: [String: UInt64]
    /// Who caused content to be fetched since `transfersSince`, most bytes first.
    public var hydrations: [HydrationDocument]?
    /// Bytes of content that were sent since then.
    public var sentBytes: UInt64?
    /// When the domain had its first transfer; missing before there was one.
    public var transfersSince: String?
    public var hasPassthrough: Bool
    /// Why there is no passthrough.
    public var passthroughMessage: String?
    public var isReadOnly: Bool
    public var nodes: Int
    public var placeholders: Int
    /// Items whose changes the provider has not seen.
    public var pending: Int
    public var failing: Int
    public var uploading: Int
    public var downloading: Int
    /// Since this daemon started, as `bytesUploaded`.
    public var bytesFetched: UInt64
    public var bytesUploaded: UInt64
    /// Bytes of content kept here.
    public var cacheBytes: UInt64
    public var cacheLimit: UInt64?
    /// Bytes, where the provider says so.
    public var quotaTotal: UInt64?
    public var quotaAvailable: UInt64?
    public var openFiles: Int
    /// Nodes that the kernel refers to, as far as this daemon has told it of them.
    public var kernelNodes = 0
    /// A holder lives that starts a successor when the daemon ends.
    public var isSupervised = false
    /// With a successor the mount goes on, and open files with it; otherwise it is made anew.
    public var outlivesDaemon = false
    public var holderID: Int32?
    /// How many daemons the mount has had before.
    public var restarts = 0
    /// How the last one ended: `signal 9`, `status 1`; missing before there was one.
    public var lastEnd: String?
    /// Items that stay on this machine: `GET /v1/pending?excluded=true` lists them.
    public var excluded: Int?
    /// Values of so many applications, and containers, that the provider does not have yet.
    public var unsentRecords: Int?
    /// Items with extended attributes or ACLs, which stay on this machine as well.
    public var localAttributes: Int?
    /// Since when it is not online, and when it is tried again.
    public var connectionSince: String?
    public var nextTry: String?
    /// Since when the provider has not answered what it is being told; missing: it was heard a moment ago.
    public var silentSince: String?
    /// Since when nothing is sent and fetched by itself, as `promisefs pause` said; missing: it is.
    public var pausedSince: String?
    /// Bytes a second that may go to the provider and come from it, as `promisefs limit` said; missing: as many as can.
    public var uploadLimit: UInt64?
    public var downloadLimit: UInt64?
    /// Documents that have unresolved versions: `promisefs conflicts` lists them.
    public var conflicts: Int?
    /// What is wrong with the settings that the domain was to have: it has those of the last time.
    public var configurationProblem: String?
    /// The storage to which another machine has moved the domain: `promisefs migrate` takes this one there, too.
    public var movedTo: String?
    /// Folders that the provider did not show, and what is left on the disk of the state folder, in bytes.
    public var unlisted: Int?
    public var diskAvailable: UInt64?
    /// Of the daemon.
    public var uptimeSeconds: Int?
    /// Of the daemon's program, which an upgrade may have replaced since it began: `0.1.0`.
    public var version: String?
    /// Where the daemon writes what happens, unless it stays in the foreground.
    public var logFile: String?

    public init(
        name: String, provider: String, capabilities: [String], mountPoint: String, mountPointBytes: String,
        stateFolder: String, stateFolderBytes: String, processID: Int32, connection: String,
        connectionMessage: String? = nil, transport: String, transportMessage: String? = nil,
        requests: [String: UInt64] = [:], hasPassthrough: Bool, passthroughMessage: String? = nil,
        isReadOnly: Bool, nodes: Int, placeholders: Int, pending: Int, failing: Int, uploading: Int, downloading: Int,
        bytesFetched: UInt64, bytesUploaded: UInt64, cacheBytes: UInt64, cacheLimit: UInt64? = nil,
        quotaTotal: UInt64? = nil, quotaAvailable: UInt64? = nil, openFiles: Int
    ) {
        self.name = name
        self.provider = provider
        self.capabilities = capabilities
        limitations = nil
        self.mountPoint = mountPoint
        self.mountPointBytes = mountPointBytes
        self.stateFolder = stateFolder
        self.stateFolderBytes = stateFolderBytes
        self.processID = processID
        self.connection = connection
        self.connectionMessage = connectionMessage
        self.transport = transport
        self.transportMessage = transportMessage
        self.requests = requests
        self.hasPassthrough = hasPassthrough
        self.passthroughMessage = passthroughMessage
        self.isReadOnly = isReadOnly
        self.nodes = nodes
        self.placeholders = placeholders
        self.pending = pending
        self.failing = failing
        self.uploading = uploading
        self.downloading = downloading
        self.bytesFetched = bytesFetched
        self.bytesUploaded = bytesUploaded
        self.cacheBytes = cacheBytes
        self.cacheLimit = cacheLimit
        self.quotaTotal = quotaTotal
        self.quotaAvailable = quotaAvailable
        self.openFiles = openFiles
    }
}

/// `GET /v1/items`: every promised value of an item that needs no content.
public struct ItemDocument: Codable, Sendable, Equatable {
    /// The inode number in the mount.
    public var node: UInt64
    /// From the root of the mount, for people: what is not UTF-8 is escaped.
    public var path: String
    /// The same path as percent-encoded bytes; requests take this form.
    public var pathBytes: String
    /// `file`, `folder`, `link`, `fifo`, `socket`, `characterDevice` or `blockDevice`.
    public var kind: String
    /// Bytes.
    public var size: UInt64
    /// Bytes of the content that are here.
    public var localBytes: UInt64
    /// Permission, set-id and sticky bits.
    public var mode: UInt32
    public var owner: UInt32
    public var group: UInt32
    /// RFC 3339 in UTC with nanoseconds, as all times.
    public var accessTime: String
    public var modificationTime: String
    public var changeTime: String
    public var birthTime: String
    public var links: UInt32
    /// The provider's name for the item; nil before the provider has it.
    public var identifier: String?
    public var version: String?
    /// `placeholder`, `partial`, `current`, `modified`, `uploading`, `conflicted`, `excluded` or `error`.
    public var state: String
    /// `pinned`, `online-only` or `automatic`.
    public var pin: String
    /// 0 to 1 while content is on its way in or out.
    public var progress: Double?
    public var error: String?
    public var isConflict: Bool
    public var linkTarget: String?
    public var linkTargetBytes: String?
    /// Names of extended attributes and ACLs that stay on this machine. Missing when there are none.
    public var localAttributes: [String]?
    /// Names of extended attributes that other machines have, too, or will. Missing when there are none.
    public var attributes: [String]?
    /// Every attribute that is known, by the names that queries have: docs/QUERIES.md says what they mean.
    public var values: [String: WireValue]?
    /// A picture of the document is kept: `GET /v1/items/thumbnail`. Without one there may still be one to be made.
    public var hasThumbnail: Bool?
    /// Of a link that follows a document.
    public var reference: ReferenceDocument?

    public init(
        node: UInt64, path: String, pathBytes: String, kind: String, size: UInt64, localBytes: UInt64, mode: UInt32,
        owner: UInt32, group: UInt32, accessTime: String, modificationTime: String, changeTime: String, birthTime: String,
        links: UInt32, identifier: String? = nil, version: String? = nil, state: String, pin: String,
        progress: Double? = nil, error: String? = nil, isConflict: Bool, linkTarget: String? = nil,
        linkTargetBytes: String? = nil
    ) {
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.kind = kind
        self.size = size
        self.localBytes = localBytes
        self.mode = mode
        self.owner = owner
        self.group = group
        self.accessTime = accessTime
        self.modificationTime = modificationTime
        self.changeTime = changeTime
        self.birthTime = birthTime
        self.links = links
        self.identifier = identifier
        self.version = version
        self.state = state
        self.pin = pin
        self.progress = progress
        self.error = error
        self.isConflict = isConflict
        self.linkTarget = linkTarget
        self.linkTargetBytes = linkTargetBytes
    }
}

/// A program's line of `hydrations`.
public struct HydrationDocument: Codable, Sendable, Equatable {
    /// Its name; `(background)` for what nobody waited for, `(unknown)`, and `(others)` when there are too many.
    public var program: String
    public var fetches: UInt64
    public var bytes: UInt64
    /// How often it was told that it may not.
    public var refusals: UInt64

    public init(program: String, fetches: UInt64, bytes: UInt64, refusals: UInt64) {
        self.program = program
        self.fetches = fetches
        self.bytes = bytes
        self.refusals = refusals
    }
}

/// The answer to `POST /v1/items/values`: what is known of items without their content, in the order of the request.
public struct PromisedValuesDocument: Codable, Sendable, Equatable {
    public var items: [PromisedItemDocument]
    public var failures: [ItemFailureDocument]

    public init(items: [PromisedItemDocument], failures: [ItemFailureDocument]) {
        self.items = items
        self.failures = failures
    }
}

/// The promised values of one item.
public struct PromisedItemDocument: Codable, Sendable, Equatable {
    /// The inode number in the mount.
    public var node: UInt64
    public var path: String
    public var pathBytes: String
    /// By the names that queries have; what is not known is missing.
    public var values: [String: WireValue]

    public init(node: UInt64, path: String, pathBytes: String, values: [String: WireValue]) {
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.values = values
    }
}

/// `GET /v1/items/versions`: what is known of a document's versions, the current one first.
public struct VersionsDocument: Codable, Sendable, Equatable {
    public var versions: [VersionDocument]
    /// Why earlier versions are not among them, for people.
    public var note: String

    public init(versions: [VersionDocument], note: String) {
        self.versions = versions
        self.note = note
    }
}

/// One version of a document.
public struct VersionDocument: Codable, Sendable, Equatable {
    /// The same as long as the version is there: `current`, `provider`, of an unresolved one the number of its node, or what the
    /// provider calls an earlier one.
    public var identifier: String
    /// `current`, `provider` (what the provider has, where that is another one), `conflict` (unresolved, a file of its own) or
    /// `earlier` (what the document was, as the provider has kept it).
    public var kind: String
    /// Missing for the provider's, which has no name of its own here.
    public var node: UInt64?
    public var path: String
    public var pathBytes: String
    /// The provider's name of the version; missing before the provider has it.
    public var version: String?
    public var size: UInt64
    public var modificationTime: String
    /// The content is on this machine.
    public var isLocal: Bool
    /// Another one after every write; what `VersionsRequest.states` names. Missing for what has no name here.
    public var state: String?

    public init(
        identifier: String? = nil, kind: String, node: UInt64?, path: String, pathBytes: String, version: String?, size: UInt64,
        modificationTime: String, isLocal: Bool, state: String? = nil
    ) {
        self.state = state
        self.identifier = identifier ?? (kind == "conflict" ? "\(node ?? 0)" : kind)
        self.kind = kind
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.version = version
        self.size = size
        self.modificationTime = modificationTime
        self.isLocal = isLocal
    }
}
