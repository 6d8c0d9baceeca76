package import PromiseCore
package import PromiseFilesystem
package import PromiseQuery

/// How a domain is to be opened and mounted.
package struct DomainConfiguration: Sendable {
    package var name: String
    /// As in the design: `folder:/path`.
    package var provider: String
    /// Absolute bytes of the folder that holds index, content and lock.
    package var stateFolder: [UInt8]
    /// Absolute bytes; resolved before anything changes the working directory.
    package var mountPoint: [UInt8]
    /// Bytes of content kept at most; nil: as much as the disk allows.
    package var cacheLimit: UInt64?
    /// How long what programs remove can come back; nil: it cannot.
    package var removedAge: Duration? = .seconds(30 * 86_400)
    /// Quiet time after the last change of an item before the provider is told.
    package var uploadDelay: Duration = .seconds(2)
    /// Between two looks at a provider that cannot push changes.
    package var pollInterval: Duration = .seconds(30)
    /// How long a request on the mount may wait for the provider.
    package var requestDeadline: Duration = .seconds(30)
    /// Who may cause content to be fetched: before the built-in rules.
    package var hydrationRules: [HydrationRules.Rule] = []
    /// Lines as of gitignore(5): what they match stays on this machine.
    package var ignoredPatterns: [String] = []
    /// Of all values of one application together, and of each.
    package var valueByteCount = 64 << 10
    package var valueCount = 1024
    /// More is no small thing any more, and one object at the provider must hold it.
    package static let valueByteCountMax: UInt64 = 4 << 20
    package static let valueCountMax = 65_536
    package var isReadOnly = false
    /// What programs that know nothing of claims are held to.
    package var coordination = CoordinationMode.wait
    /// How long removing and renaming wait for claims.
    package var nameDeadline = Duration.seconds(2)
    package var allowsPassthrough = true
    /// Bytes of the path of `promisefs-backing`, which gives an ordinary user passthrough; nil: there is none.
    package var backingHelper: [UInt8]?
    /// Bytes of the path of `promisefs-echo`, by which programs that watch hear of remote changes; nil: they do not.
    package var echoProgram: [UInt8]?
    /// Bytes of the path of `promisefs-locks`, by which locks in views hold on the mount; nil: views have none.
    package var lockProgram: [UInt8]?
    package var wantsRings = false
    package var allowsLatencyLimit = true
    /// As mount(8): allow_other, uid=, gid=, …
    package var mountOptions: [String] = []
    /// From the environment; wins over the credentials file.
    package var login: Login?
    /// Asks again who has been asked for `login` and did not give it, as a keyring that is locked; throws a sentence.
    package typealias KeptLogin = @Sendable () async throws(Domain.StartFailure) -> Login?
    package var keptLogin: KeptLogin?
    /// What is wrong with the settings that the domain was to have, a sentence: it has those of the last time. Nil: nothing.
    package var problem: String?
    /// Bytes of the path of the file with the users' names and passwords; it need not be there.
    package var credentialsFile: [UInt8]?
    /// What the provider's server is known by: the path of a PEM file, or `sha256:…`; nil: the system's authorities.
    package var certificate: String?

    package init(name: String, provider: String, stateFolder: [UInt8], mountPoint: [UInt8]) {
        self.name = name
        self.provider = provider
        self.stateFolder = stateFolder
        self.mountPoint = mountPoint
    }
}

/// What `status` shows.
package struct DomainStatus: Sendable {
    package enum Connection: String, Sendable { case online, offline, connecting, failing }

    package var name: String
    package var provider: String
    package var capabilities: [String]
    /// What the provider lacks and how that is met, a sentence each.
    package var limitations: [String] = []
    package var mountPoint: [UInt8]
    package var stateFolder: [UInt8]
    package var processID: Int32
    package var connection: Connection
    /// Why it is not online.
    package var connectionMessage: String?
    /// Since when it is not, and when it is tried again.
    package var connectionSince: Timestamp?
    package var nextTry: Timestamp?
    /// Since when it has not answered what it is being told; nil: it was heard a moment ago.
    package var silentSince: Timestamp?
    /// Since when nothing is sent and fetched by itself, as somebody wants; nil: it is.
    package var pausedSince: Timestamp?
    /// How fast bytes may go to the provider's server and come from it.
    package var lineRates = LineRates()
    /// `device` or `io_uring`.
    package var transport: String
    /// Why the transport is the device.
    package var transportMessage: String?
    /// Requests of the kernel since the mount, by their names.
    package var requests: [String: UInt64] = [:]
    /// What was fetched for whom and what was sent, by all daemons that the domain has had.
    package var transfers = TransferCounts()
    package var hasPassthrough: Bool
    /// Why there is no passthrough.
    package var passthroughMessage: String?
    package var isReadOnly: Bool
    package var nodes: Int
    package var placeholders: Int
    package var pending: Int
    package var failing: Int
    package var uploading: Int
    package var downloading: Int
    /// Bytes since this daemon started.
    package var bytesFetched: UInt64
    package var bytesUploaded: UInt64
    package var cacheBytes: UInt64
    package var cacheLimit: UInt64?
    package var quotaTotal: UInt64?
    package var quotaAvailable: UInt64?
    package var openFiles: Int
    /// Nodes that the kernel refers to.
    package var kernelNodes = 0
    /// A holder lives that starts a successor when this daemon ends.
    package var isSupervised = false
    /// With a successor the mount goes on; otherwise it is made anew.
    package var outlivesDaemon = false
    package var holderID: Int32?
    /// How many daemons this mount has had before, and how the last one ended.
    package var restarts = 0
    package var lastEnd: String?
    /// Items that stay on this machine.
    package var excluded = 0
    /// Values of so many applications, and containers, that the provider does not have yet.
    package var unsentRecords = 0
    /// Items with extended attributes that stay here, or ACLs.
    package var localAttributes = 0
    /// What is wrong with the settings that it was to have, a sentence.
    package var configurationProblem: String?
    /// The storage to which another machine has moved the domain.
    package var movedTo: String?
    /// Documents that have unresolved versions.
    package var conflicts = 0
    /// Folders that the provider did not show.
    package var unlisted = 0
    /// Bytes that this process can still put on the disk of the state folder; nil where that is not known.
    package var diskAvailable: UInt64?

    package init(
        name: String, provider: String, capabilities: [String], mountPoint: [UInt8], stateFolder: [UInt8], processID: Int32,
        connection: Connection, connectionMessage: String?, transport: String, transportMessage: String? = nil,
        requests: [String: UInt64] = [:], hasPassthrough: Bool,
        passthroughMessage: String?, isReadOnly: Bool, nodes: Int, placeholders: Int, pending: Int, failing: Int,
        uploading: Int, downloading: Int, bytesFetched: UInt64, bytesUploaded: UInt64, cacheBytes: UInt64,
        cacheLimit: UInt64?, quotaTotal: UInt64?, quotaAvailable: UInt64?, openFiles: Int
    ) {
        self.name = name
        self.provider = provider
        self.capabilities = capabilities
        self.mountPoint = mountPoint
        self.stateFolder = stateFolder
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

/// Every promised value of an item that needs no content.
package struct ItemInformation: Sendable {
    package var node: NodeID
    /// Names from the root of the mount.
    package var path: [FileName]
    package var kind: NodeKind
    package var size: UInt64
    package var localBytes: UInt64
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    package var accessTime: Timestamp
    package var modificationTime: Timestamp
    package var changeTime: Timestamp
    package var birthTime: Timestamp
    package var links: UInt32
    package var identifier: ItemIdentifier?
    package var version: ContentVersion?
    package var state: ItemState
    package var pin: Pin
    /// 0 to 1 while content is on its way in or out.
    package var progress: Double?
    package var error: String?
    package var isConflict: Bool
    package var linkTarget: [UInt8]?
    /// Names of those extended attributes and ACLs that stay on this machine.
    package var localAttributes: [[UInt8]] = []
    /// Of its extended attributes, those that other machines have, too.
    package var attributes: [[UInt8]] = []
    /// Everything that can be asked about the item, by the names that queries have; what is not known is missing.
    package var values: [AttributeKey: QueryValue] = [:]

    package init(
        node: NodeID, path: [FileName], kind: NodeKind, size: UInt64, localBytes: UInt64, mode: UInt32, owner: UInt32,
        group: UInt32, accessTime: Timestamp, modificationTime: Timestamp, changeTime: Timestamp, birthTime: Timestamp,
        links: UInt32, identifier: ItemIdentifier?, version: ContentVersion?, state: ItemState, pin: Pin, progress: Double?,
        error: String?, isConflict: Bool, linkTarget: [UInt8]?
    ) {
        self.node = node
        self.path = path
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
    }
}

package struct PendingWork: Sendable {
    /// `excluded` is no work: it is never sent. `list`: a folder that the provider did not show.
    package enum Kind: String, Sendable {
        case upload, create, move, metadata, delete, download, local, excluded, list
    }

    package var kind: Kind
    package var node: NodeID?
    /// Names from the root; for a deletion the provider's last known ones.
    package var path: [FileName]
    package var isRunning: Bool
    package var size: UInt64
    package var progress: Double?
    package var since: Timestamp
    package var attempts: Int
    package var error: String?
    /// Since when the provider has neither taken bytes nor answered; nil: it was heard a moment ago.
    package var silentSince: Timestamp?
    /// Of what the provider did not take when it was told.
    package var code: Failure.Code?

    package init(
        kind: Kind, node: NodeID?, path: [FileName], isRunning: Bool, size: UInt64, progress: Double?, since: Timestamp,
        attempts: Int, error: String?
    ) {
        self.kind = kind
        self.node = node
        self.path = path
        self.isRunning = isRunning
        self.size = size
        self.progress = progress
        self.since = since
        self.attempts = attempts
        self.error = error
    }
}

/// What is pending, oldest first, and how much more there is than is listed.
package struct PendingList: Sendable {
    package var items: [PendingWork] = []
    /// Changes that the provider has not seen.
    package var moreCount = 0
    package var moreByteCount: UInt64 = 0

    package init() {}

    package var count: Int { items.count + moreCount }
    /// How many changes the provider has not seen.
    package var toBeSentCount: Int { items.count(where: \.isToBeSent) + moreCount }
}

package struct FetchProgress: Sendable {
    package var filesDone: Int
    package var filesTotal: Int
    package var bytesDone: UInt64
    package var bytesTotal: UInt64
    package var failures: [(path: [FileName], failure: Failure)]

    package init(
        filesDone: Int, filesTotal: Int, bytesDone: UInt64, bytesTotal: UInt64,
        failures: [(path: [FileName], failure: Failure)]
    ) {
        self.filesDone = filesDone
        self.filesTotal = filesTotal
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
        self.failures = failures
    }
}

package struct EvictionReport: Sendable {
    package var evicted: Int
    package var bytesFreed: UInt64
    /// Modified, pinned or open items stay.
    package var kept: [KeptItem]

    package init(evicted: Int, bytesFreed: UInt64, kept: [KeptItem]) {
        self.evicted = evicted
        self.bytesFreed = bytesFreed
        self.kept = kept
    }
}

package struct KeptItem: Sendable {
    package var path: [FileName]
    package var reason: KeptReason
    /// It is what was to be evicted, not something below that.
    package var isAsked: Bool

    package init(_ path: [FileName], _ reason: KeptReason, isAsked: Bool) {
        self.path = path
        self.reason = reason
        self.isAsked = isAsked
    }
}

package struct PinReport: Sendable {
    /// How many items have the pin now.
    package var items: Int
    /// Folders that could not be listed, so what is in them has not got it.
    package var failures: [(path: [FileName], failure: Failure)]

    package init(items: Int, failures: [(path: [FileName], failure: Failure)]) {
        self.items = items
        self.failures = failures
    }
}

package struct VerifyReport: Sendable {
    /// A sentence for each violation that is left.
    package var problems: [String]
    /// A sentence for each one that was mended.
    package var repaired: [String]
    package var nodes: Int

    package init(
        problems: [String], repaired: [String], nodes: Int
    ) {
        self.problems = problems
        self.repaired = repaired
        self.nodes = nodes
    }
}
