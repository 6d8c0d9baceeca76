import Glibc
package import Logging
package import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// A collection on a WebDAV server (RFC 4918) as the cloud: `webdav+https://host/path`. Anybody may
/// change it meanwhile.
///
/// **Identity.** Servers have no names for items but their places, so an identifier is a place and
/// does not survive a move; whoever uses this provider recognises its own moves. Where the server
/// numbers its files (ownCloud, Nextcloud) an identifier is the number, and still the server can
/// only be asked by place.
///
/// **Versions** are entity tags. Every content that comes is compared with the tag it was asked
/// for. Writes are made under a lock where the server has locks, else as conditional requests where
/// it honours them: see `ServerTraits`.
///
/// **Threads.** Requests are asynchronous; reading and parsing, which block, run on a pool.
package final class WebDAVProvider: Provider, Sendable {
    package let name: String
    let resources: WebDAVResources
    let items: WebDAVItems
    let locks: WriteLocks
    let properties: PropertyWriter
    let uploads: UploadFolder
    let parts: PartUpload
    /// Large uploads.
    let journal: UploadJournal
    let mover: ResourceMover
    let writer: FileWriter
    let remover: ResourceRemover
    let lister: FolderLister
    let news: FolderNews
    let fetcher: ContentFetcher
    let probeTroubles = ProbeTroubles()
    let acquaintance = Acquaintance()
    let laterTries = LaterTries()
    let twinSuspects = TwinSuspects()
    let rememberedObjects = RememberedObjects()
    let met = Mutex(FirstMeeting.Met())
    let traitsFile: RememberedFile<ServerTraits>
    let remembered: ServerTraits?
    /// Trying what a server does writes to it.
    let mayProbe: Bool
    /// Says in locks whose they are. The same in every run on one state folder, so that a lock left
    /// by a killed daemon is known for our own.
    let owner: String
    /// In the names of uploads: this run's own.
    let session: String

    /// Reaches for nothing yet. Large content goes up in parts of `partByteCount`. Throws a
    /// sentence when the credentials cannot be read.
    package init(
        location: WebDAVLocation, credentials: CredentialSource, stateFolder: [UInt8]?,
        mayProbe: Bool = true,
        trust: ServerTrust = .system, logger: Logger, clock: any TimeSource = SystemClock(),
        partByteCount: UInt64 = 8 << 20,
        lockSeconds: UInt64 = 30, relay: (any ServerRelay)? = nil
    ) throws(ProviderError) {
        self.mayProbe = mayProbe
        name = location.name
        let client = try WebDAVClient(
            location: location, credentials: credentials, trust: trust, clock: clock,
            digestMemory: DigestMemory(folder: stateFolder, origin: location.origin, logger: logger),
            relay: relay)
        traitsFile = RememberedFile(folder: stateFolder, name: "webdav-server.json", logger: logger)
        remembered = traitsFile.read()
        journal = UploadJournal(
            RememberedFile(folder: stateFolder, name: "webdav-uploads.json", logger: logger))
        owner = remembered?.owner ?? "promisefs-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        session = "\(owner)-\(String(clock.now().rawValue, radix: 36))-\(getpid())"
        resources = WebDAVResources(
            client: client, location: location, known: remembered, logger: logger, clock: clock)
        items = WebDAVItems(resources: resources)
        locks = WriteLocks(resources, owner: owner, lockSeconds: lockSeconds)
        properties = PropertyWriter(resources: resources, items: items, locks: locks)
        uploads = UploadFolder(resources, session: session)
        mover = ResourceMover(resources: resources, locks: locks)
        remover = ResourceRemover(resources, locks)
        let sender = ContentSender(resources: resources, locks: locks, uploads: uploads)
        let chunks = ChunkFolder(resources: resources, sender: sender)
        parts = PartUpload(
            resources: resources, uploads: uploads, sender: sender, chunks: chunks,
            journal: journal,
            partByteCount: partByteCount)
        writer = FileWriter(
            resources: resources, items: items, locks: locks, properties: properties,
            uploads: uploads,
            sender: sender, chunks: chunks, parts: parts, mover: mover)
        lister = FolderLister(items: items, acquaintance: acquaintance)
        news = FolderNews(resources: resources)
        fetcher = ContentFetcher(resources)
    }

    /// With names as the server takes them.
    package var location: WebDAVLocation { resources.location }

    package var capabilities: Capabilities {
        let traits = resources.traits
        var result: Capabilities = [.atomicRename, .placeIdentifiers]
        if traits.hasRanges { result.insert(.ranges) }
        if traits.keepsProperties { result.formUnion([.metadata, .links]) }
        if traits.locks { result.insert(.conditionalWrite) }
        if traits.hasQuota { result.insert(.quota) }
        if sharingLinks != nil { result.insert(.sharingLinks) }
        if bin != nil { result.insert(.removedItems) }
        if privateObjects != nil { result.insert(.privateObjects) }
        return result
    }

    package var executor: (any TaskExecutor)? { resources.client.executor }
    package var faultLine: FaultLine? { resources.client.faultLine }
    package var lineLimit: LineLimit? { resources.client.lineLimit }

    package var limitations: [String] { resources.knownTraits?.shortcomings ?? [] }

    // MARK: Meeting the server

    package func greet() async throws(ProviderError) {
        try await FirstMeeting(provider: self).greet()
    }
    package func connect() async throws(ProviderError) {
        try await FirstMeeting(provider: self).connect()
    }

    package func letGo() async {
        await acquaintance.end()
        await locks.close()
    }

    // MARK: Looking

    /// A server that was away when the mount began, or in trouble when it was tried, is tried when
    /// it is back.
    package func root() async throws(ProviderError) -> Item {
        let item = try await rootItem()
        let known = (met.withLock { $0.subject }, resources.knownTraits)
        if laterTries.isDue(for: known, self) { try await greet() }
        return item
    }

    private func rootItem() async throws(ProviderError) -> Item {
        // Whoever has just been greeted told it.
        let greeted = met.withLock { $0.root.take() }
        let resource =
            if let greeted { greeted } else { try await resources.resource(at: [], isFolder: true) }
        guard resource.isCollection else {
            throw ProviderError(.permanent, "'\(name)' is not a folder on the server")
        }
        return try items.item(resource, path: [], parent: nil)
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        if reference.path.isEmpty { return try await root() }
        let (path, seen) = try await TwinNames(provider: self, path: reference.path).found()
        let found = try await resources.client.completed(seen, location.url(path))
        var item = try items.item(found, path: path, parent: nil)
        // Another number is another item.
        if !item.identifier.isNumber { item.identifier = reference.identifier }
        return item
    }

    package func quota() async throws(ProviderError) -> Quota? {
        if let greeted = met.withLock({ $0.quota.take() }) { return greeted.quota }
        let body =
            "<propfind xmlns=\"DAV:\"><prop>\(WebDAVResources.quotaProperties)</prop></propfind>"
        return try await resources.propfind([], isFolder: true, depth: "0", body: body).first?
            .resource.quota
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?)
        async throws(ProviderError) -> ItemPage
    {
        ItemPage(items: try await lister.list(folder, handOn: nil))
    }

    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        try await lister.list(folder, handOn: handOn)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await news.page(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "a WebDAV server does not push changes")
    }

    // MARK: Content

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        try await fetcher.fetch(of: reference, version: version, range: range, into: sink)
    }

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await acquaintance.complete()
        guard let source = resources.traits.previews, source != .nowhere,
            try await resources.file(at: reference.path).isOf(version)
        else { return nil }
        let what = "a picture of \(resources.shown(reference.path)) cannot be fetched"
        guard
            let picture = try await previews.picture(reference.path, size: size, from: source, what)
        else { return nil }
        // The reply does not say of which version it is.
        return try await resources.file(at: reference.path).isOf(version) ? picture : nil
    }

    var previews: ServerPreviews {
        ServerPreviews(client: resources.client, location: location, pool: resources.pool)
    }

    private var earlierFiles: EarlierFiles {
        EarlierFiles(client: resources.client, location: location, pool: resources.pool)
    }

    package func earlierVersions(of reference: ItemReference) async throws(ProviderError)
        -> [EarlierVersion]
    {
        try await earlierFiles.list(
            of: numbered(reference.path),
            "the versions of \(resources.shown(reference.path)) cannot be listed")
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        let what = "a version of \(resources.shown(reference.path)) cannot be fetched"
        try await earlierFiles.fetch(
            earlier, of: numbered(reference.path), into: sink, what)
    }

    /// With its number, by which the server has its versions, also while it is not known whether
    /// items can be called by it: nothing is tried of a server that nothing is written to.
    private func numbered(_ path: [FileName]) async throws(ProviderError) -> ResourceStatus {
        let body = WebDAVResources.propertyRequest(WebDAVResources.numberProperty)
        return try await resources.resource(at: path, body: body)
    }
}

extension ResourceStatus {
    fileprivate func isOf(_ version: ContentVersion) -> Bool { self.version == version }
}
