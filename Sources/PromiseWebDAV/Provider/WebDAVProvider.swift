import Glibc
package import Logging
import NIOHTTP1
package import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// A collection on a WebDAV server (RFC 4918) as the cloud: `webdav+https://host/path`. Anybody may change it meanwhile.
///
/// **Identity.** Servers have no names for items but their places, so an identifier is a place and does not survive a move;
/// whoever uses this provider recognises its own moves. Where the server numbers its files (ownCloud, Nextcloud) an identifier is
/// the number, and still the server can only be asked by place.
///
/// **Versions** are entity tags. Every content that comes is compared with the tag it was asked for. Writes are made under a
/// lock where the server has locks, else as conditional requests where it honours them: see `ServerTraits`.
///
/// **Threads.** Requests are asynchronous; reading and parsing, which block, run on a pool.
package final class WebDAVProvider: Provider, Sendable {
    struct Shared: Sendable {
        /// Nil until it is known what the server does; see `FirstMeeting`.
        var traits: ServerTraits?
        /// What is taken for true until then: what only reads need.
        var provisional = ServerTraits.provisional
        /// What the server calls itself; nil until it has been met.
        var subject: String?
        var greetedRoot: ResourceStatus?
        var greetedQuota: ResourceStatus?
        /// Folders that were listed, to be listed again when changes are asked for.
        var folders: Set<ItemIdentifier> = []
        /// Of those, what they gave out when they were listed.
        var syncTokens: [ItemIdentifier: SyncToken] = [:]
        /// Which hold something with which something of ours is kept.
        var keeping = KeepingFolders()
        /// Folders that have numbers, by place: as they were called last.
        var numbers: [[FileName]: ItemIdentifier] = [:]
        /// The server sends content without saying which version it is.
        var hasRepliesWithoutVersion = false
        /// It answers HEAD without saying how much there is.
        var hasHeadsWithoutSize = false
        var uploadCount: UInt64 = 0
        /// Temporary places of uploads under way, and whose they are, for messages.
        var asides: [[FileName]: [FileName]] = [:]
        var endedLocks = EndedLocks()
        /// Folders for temporary uploads have been made.
        var hasUploads = false
        /// Files in a row that were not removed by their tag alone, and had that version all the same.
        var vainDeletionCount = 0
    }

    package let name: String
    private let address: WebDAVLocation
    let client: WebDAVClient
    let logger: Logger
    let clock: any TimeSource
    let pool: BlockingPool
    let turns = PathTurns()
    let heldLocks = HeldLocks()
    let probeTroubles = ProbeTroubles()
    let acquaintance = Acquaintance()
    let givenTags = GivenTags()
    let unsteadyTags = UnsteadyTags()
    let laterTries = LaterTries()
    let twinSuspects = TwinSuspects()
    let rememberedObjects = RememberedObjects()
    let shared: Mutex<Shared>
    /// Large ones.
    let uploads: UploadJournal
    /// Of these; four of them are large.
    let partByteCount: UInt64
    /// What a lock lasts for unless it is asked for again, as for one of a client that was killed.
    let lockSeconds: UInt64
    let traitsFile: RememberedFile<ServerTraits>
    let remembered: ServerTraits?
    /// Trying what a server does writes to it.
    let mayProbe: Bool
    /// Says in locks whose they are. The same in every run on one state folder, so that a lock left by a killed daemon is
    /// known for our own.
    let owner: String
    /// In the names of uploads: this run's own.
    let session: String

    /// Reaches for nothing yet. Large content goes up in parts of `partByteCount`. Throws a sentence when the credentials cannot
    /// be read.
    package init(
        location: WebDAVLocation, credentials: CredentialSource, stateFolder: [UInt8]?, mayProbe: Bool = true,
        trust: ServerTrust = .system, logger: Logger, clock: any TimeSource = SystemClock(), partByteCount: UInt64 = 8 << 20,
        lockSeconds: UInt64 = 30, relay: (any ServerRelay)? = nil
    ) throws(ProviderError) {
        address = location
        self.partByteCount = partByteCount
        self.lockSeconds = lockSeconds
        self.logger = logger
        self.clock = clock
        self.mayProbe = mayProbe
        name = location.name
        client = try WebDAVClient(location: location, credentials: credentials, trust: trust, clock: clock, relay: relay)
        pool = BlockingPool(name: "webdav", threads: 4)
        traitsFile = RememberedFile(folder: stateFolder, name: "webdav-server.json", logger: logger)
        remembered = traitsFile.read()
        uploads = UploadJournal(RememberedFile(folder: stateFolder, name: "webdav-uploads.json", logger: logger))
        shared = Mutex(Shared(traits: remembered))
        owner = remembered?.owner ?? "promisefs-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        session = "\(owner)-\(String(clock.now().rawValue, radix: 36))-\(getpid())"
    }

    deinit { pool.stop() }

    /// With names as the server takes them.
    package var location: WebDAVLocation { address.escaping(traits.escapes ?? []) }

    var traits: ServerTraits { shared.withLock { $0.traits ?? $0.provisional } }

    package var capabilities: Capabilities {
        let traits = traits
        var result: Capabilities = [.atomicRename, .placeIdentifiers]
        if traits.hasRanges { result.insert(.ranges) }
        if traits.keepsProperties { result.formUnion([.metadata, .links]) }
        if traits.locks { result.insert(.conditionalWrite) }
        if traits.hasQuota { result.insert(.quota) }
        if sharingLinks != nil { result.insert(.sharingLinks) }
        if privateObjects != nil { result.insert(.privateObjects) }
        return result
    }

    package var executor: (any TaskExecutor)? { client.executor }
    package var faultLine: FaultLine? { client.faultLine }
    package var lineLimit: LineLimit? { client.lineLimit }

    package var limitations: [String] { shared.withLock { $0.traits }?.shortcomings ?? [] }

    /// A server that was away when the mount began, or in trouble when it was tried, is tried when it is back.
    package func root() async throws(ProviderError) -> Item {
        let item = try await rootItem()
        if laterTries.isDue(for: shared.withLock { ($0.subject, $0.traits) }, self) { try await greet() }
        return item
    }

    private func rootItem() async throws(ProviderError) -> Item {
        // Whoever has just been greeted told it.
        let greeted = shared.withLock { $0.greetedRoot.take() }
        let resource = if let greeted { greeted } else { try await resource(at: [], isFolder: true) }
        guard resource.isCollection else { throw ProviderError(.permanent, "'\(name)' is not a folder on the server") }
        return try item(resource, path: [], parent: nil)
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        if reference.path.isEmpty { return try await root() }
        let found = try await client.completed(
            try await resource(at: reference.path), location.url(reference.path))
        var item = try item(found, path: reference.path, parent: nil)
        // Another number is another item.
        if !item.identifier.isNumber { item.identifier = reference.identifier }
        return item
    }

    package func quota() async throws(ProviderError) -> Quota? {
        if let greeted = shared.withLock({ $0.greetedQuota.take() }) { return greeted.quota }
        let body = "<propfind xmlns=\"DAV:\"><prop>\(WebDAVProvider.quotaProperties)</prop></propfind>"
        return try await propfind([], isFolder: true, depth: "0", body: body).first?.resource.quota
    }
}
