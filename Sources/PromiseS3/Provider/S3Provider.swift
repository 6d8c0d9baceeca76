package import Logging
package import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem

/// A bucket on an S3 server, or what is below a prefix of it, as the cloud: `s3://bucket/prefix`.
/// Anybody may change it meanwhile.
///
/// **Identity.** Keys are places: an identifier does not survive a move; whoever uses this provider
/// recognises its own moves.
///
/// **Folders** are what keys have in common up to a slash, and markers: see `BucketFolders`.
///
/// **Versions** are entity tags. Writes are conditional requests where the server honours them: see
/// `S3Traits`.
///
/// **Metadata** is not in listings: see `FolderLister`.
///
/// **Threads.** Requests are asynchronous; reading, hashing and parsing, which block, run on a
/// pool.
package final class S3Provider: Provider, Sendable {
    package let name: String
    let bucket: S3Bucket
    let meeting: FirstMeeting
    let items: S3Items
    let folders: BucketFolders
    let listed = ListedFolders()
    let finder: DetailsFinder
    let lister: FolderLister
    let looks: BucketChanges
    let fetcher: ObjectFetcher
    let uploads: MultipartUpload
    let writer: ObjectWriter
    let remover: ObjectRemover
    let metadata: MetadataWriter
    let folderMove: FolderMove
    let moves: BucketMoves
    let rememberedObjects = RememberedObjects()

    /// Reaches for nothing yet. Throws a sentence when the credentials cannot be read.
    package init(
        location: S3Location, credentials: AccessKeySource, stateFolder: [UInt8]?,
        mayProbe: Bool = true,
        trust: ServerTrust = .system, logger: Logger,
        timeouts: HTTPTransport.Timeouts = HTTPTransport.Timeouts(),
        clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        name = location.name
        bucket = try S3Bucket(
            location: location, credentials: credentials, trust: trust, timeouts: timeouts,
            logger: logger,
            clock: clock)
        meeting = FirstMeeting(bucket, stateFolder: stateFolder, mayProbe: mayProbe)
        items = S3Items(location: location, clock: clock)
        let hollows = HollowObjects(bucket: bucket)
        let copier = ObjectCopier(bucket: bucket, hollows: hollows)
        remover = ObjectRemover(bucket: bucket, hollows: hollows)
        folders = BucketFolders(bucket: bucket, copier: copier)
        finder = DetailsFinder(bucket: bucket, folders: folders, hollows: hollows)
        lister = FolderLister(
            bucket: bucket, folders: folders, finder: finder, listed: listed, items: items,
            acquaintance: meeting.acquaintance)
        looks = BucketChanges(bucket: bucket, listed: listed)
        fetcher = ObjectFetcher(bucket: bucket, finder: finder)
        let uploadFile = RememberedFile<[UploadJournal.Record]>(
            folder: stateFolder, name: "s3-uploads.json", logger: logger)
        uploads = MultipartUpload(bucket: bucket, journal: UploadJournal(uploadFile))
        writer = ObjectWriter(
            bucket: bucket, folders: folders, hollows: hollows, uploads: uploads, items: items)
        metadata = MetadataWriter(bucket: bucket, folders: folders, copier: copier, items: items)
        let moveFile = RememberedFile<[MoveJournal.Record]>(
            folder: stateFolder, name: "s3-moves.json", logger: logger)
        let journal = MoveJournal(moveFile)
        folderMove = FolderMove(
            bucket: bucket, folders: folders, copier: copier, remover: remover, journal: journal)
        let fileMove = FileMove(
            bucket: bucket, folders: folders, copier: copier, remover: remover, journal: journal)
        moves = BucketMoves(
            bucket: bucket, folders: folders, files: fileMove, wholes: folderMove, journal: journal,
            meeting: meeting)
    }

    package var capabilities: Capabilities {
        let traits = bucket.traits
        var result: Capabilities = [.placeIdentifiers, .serverSideCopy, .sharingLinks]
        if traits.hasRanges { result.insert(.ranges) }
        // What is not known to be kept is not compared.
        if traits.keepsMetadata && bucket.isAcquainted { result.formUnion([.metadata, .links]) }
        if traits.refusesTaken && traits.matchForm != nil { result.insert(.conditionalWrite) }
        if privateObjects != nil { result.insert(.privateObjects) }
        if traits.hasMultipart { result.insert(.resumableUpload) }
        return result
    }

    package var limitations: [String] {
        let found = bucket.knownTraits?.shortcomings ?? []
        return found + [listed.limitation, folderMove.limitation].compactMap { $0 }
    }

    package var executor: (any TaskExecutor)? { bucket.client.executor }
    package var faultLine: FaultLine? { bucket.client.transport.faultLine }
    package var lineLimit: LineLimit? { bucket.client.transport.lineLimit }

    package var privateObjects: (any PrivateObjects)? {
        let traits = bucket.traits
        let mayBe = traits.refusesTaken && traits.matchForm != nil || !bucket.isAcquainted
        return mayBe ? S3PrivateObjects(provider: self) : nil
    }

    package var sharingLinks: (any SharingLinks)? { S3SharingLinks(bucket: bucket) }

    // MARK: Meeting the server

    package func connect() async throws(ProviderError) {
        try await meeting.connect { [uploads] in await uploads.removeOld() }
    }

    package func greet() async throws(ProviderError) {
        try await meeting.greet { [uploads] in await uploads.removeOld() }
    }

    package func letGo() async { await meeting.acquaintance.end() }

    // MARK: Looking

    /// A server that was away when the mount began, and of which nothing is remembered, is tried
    /// when it is back.
    package func root() async throws(ProviderError) -> Item {
        if try await meeting.look() { try await greet() }
        return items.folder([], try await folders.details(of: []), parent: nil)
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        let path = reference.path
        try await moves.finish(at: path)
        if path.isEmpty { return try await root() }
        var found: Item
        // Also tells that the bucket is there: HEAD says the same of a key and of everything that
        // is missing.
        if try await bucket.isFolder(path) {
            found = items.folder(path, try await folders.details(of: path), parent: nil)
        } else {
            try await bucket.checkIsBeside(path)
            found = items.item(try await bucket.status(of: path), path, parent: nil)
        }
        found.identifier = reference.identifier
        return found
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?)
        async throws(ProviderError) -> ItemPage
    {
        try await moves.finish(at: folder.path)
        return try await lister.list(folder, page)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        await meeting.tryAgain()
        return try await looks.page(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "an S3 server does not push changes")
    }

    // MARK: Content

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        try await moves.finish(at: reference.path)
        if let range, range.isEmpty { return }
        try await fetcher.fetch(reference.path, version: version, range: range, into: sink)
    }

    package func earlierVersions(of reference: ItemReference) async throws(ProviderError)
        -> [EarlierVersion]
    {
        try await moves.finish(at: reference.path)
        return try await ObjectVersions(bucket: bucket).list(of: reference.path)
    }

    package func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await fetcher.fetch(reference.path, earlier: earlier, into: sink)
    }
}
