import Glibc
package import Logging
import NIOHTTP1
package import PromiseCore
package import PromiseHTTP
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// A bucket on an S3 server, or what is below a prefix of it, as the cloud: `s3://bucket/prefix`. Anybody may change it
/// meanwhile.
///
/// **Identity.** Keys are places: an identifier does not survive a move; whoever uses this provider recognises its own moves.
///
/// **Folders** are what keys have in common up to a slash, and markers: empty objects whose keys end with one.
///
/// **Versions** are entity tags. Writes are conditional requests where the server honours them: see `S3Traits`.
///
/// **Metadata** is not in listings. For a few objects of a folder it is asked for at once; for many the listing comes with what
/// it tells (`Item.isGuess`), and the rest is found afterwards.
///
/// **Threads.** Requests are asynchronous; reading, hashing and parsing, which block, run on a pool.
package final class S3Provider: Provider, Sendable {
    struct Shared: Sendable {
        /// Nil until it is known what the server does.
        var traits: S3Traits?
        /// What the server calls itself; nil until it has been met.
        var subject: String?
        /// It has just said that the bucket is there.
        var isJustMet = false
        /// When it was tried last what the server does.
        var tried = Timestamp.zero
        /// Folders that were listed, by their keys, to be listed again when changes are asked for.
        var folders: [ItemIdentifier: [UInt8]] = [:]
        /// What they held then.
        var digests = FolderDigests()
        /// Uptime when a look at the whole bucket may be worth it again.
        var nextBucketLook = Duration.zero
        /// Keys of folders' markers that are there.
        var markers: Set<[UInt8]> = []
        /// How the server calls the versions that were fetched, in a bucket that keeps several.
        var readVersions: [ReadVersion: String] = [:]
        /// By folder: how many keys in it cannot be shown, and one of them.
        var hidden: [[UInt8]: (count: Int, example: String)] = [:]
        /// Objects that moves of folders left where they were, one of them, and why.
        var leftBehind: (count: Int, example: String, reason: String) = (0, "", "")
    }

    private static let pauseAfterTrouble = Duration.seconds(30)
    private static let pauseAfterRefusal = Duration.seconds(900)

    package let name: String
    let location: S3Location
    let client: S3Client
    let logger: Logger
    let clock: any TimeSource
    let pool: BlockingPool
    let turns = PathTurns()
    let details = KnownDetails()
    let finder = DetailsFinder()
    let seenFolders = SeenFolders()
    let acquaintance = Acquaintance()
    private let probeTroubles = ProbeTroubles()
    let rememberedObjects = RememberedObjects()
    let shared: Mutex<Shared>
    let uploads: UploadJournal
    let moves: MoveJournal
    private let traitsFile: RememberedFile<S3Traits>
    private let remembered: S3Traits?
    /// Trying what a server does writes to it, and so does ending a move.
    let mayProbe: Bool

    /// Reaches for nothing yet. Throws a sentence when the credentials cannot be read.
    package init(
        location: S3Location, credentials: AccessKeySource, stateFolder: [UInt8]?, mayProbe: Bool = true,
        trust: ServerTrust = .system, logger: Logger,
        timeouts: HTTPTransport.Timeouts = HTTPTransport.Timeouts(), clock: any TimeSource = SystemClock()
    ) throws(ProviderError) {
        self.location = location
        self.logger = logger
        self.clock = clock
        self.mayProbe = mayProbe
        name = location.name
        let pool = BlockingPool(name: "s3", threads: 4)
        self.pool = pool
        do throws(ProviderError) {
            client = try S3Client(
                location: location, credentials: credentials, trust: trust, timeouts: timeouts, pool: pool, logger: logger,
                clock: clock)
        } catch {
            pool.stop()
            throw error
        }
        traitsFile = RememberedFile(folder: stateFolder, name: "s3-server.json", logger: logger)
        remembered = traitsFile.read()
        shared = Mutex(Shared())
        uploads = UploadJournal(RememberedFile(folder: stateFolder, name: "s3-uploads.json", logger: logger))
        moves = MoveJournal(RememberedFile(folder: stateFolder, name: "s3-moves.json", logger: logger))
        if let remembered { take(remembered) }
    }

    deinit { pool.stop() }

    var traits: S3Traits { shared.withLock { $0.traits } ?? .provisional }

    /// Whether it is known what the server does with what is written.
    var isAcquainted: Bool { shared.withLock { $0.traits != nil } }

    var names: KeyNames {
        let traits = traits
        return KeyNames(prefix: location.prefix, escapes: traits.isGuess || traits.keepsControls ? [] : .controls)
    }

    package var capabilities: Capabilities {
        let traits = traits
        var result: Capabilities = [.placeIdentifiers, .serverSideCopy, .sharingLinks]
        if traits.hasRanges { result.insert(.ranges) }
        // What is not known to be kept is not compared.
        if traits.keepsMetadata && isAcquainted { result.formUnion([.metadata, .links]) }
        if traits.refusesTaken && traits.matchForm != nil { result.insert(.conditionalWrite) }
        if privateObjects != nil { result.insert(.privateObjects) }
        if traits.hasMultipart { result.insert(.resumableUpload) }
        return result
    }

    package var executor: (any TaskExecutor)? { client.executor }
    package var faultLine: FaultLine? { client.transport.faultLine }
    package var lineLimit: LineLimit? { client.transport.lineLimit }

    package var limitations: [String] {
        let (traits, hidden, left) = shared.withLock { ($0.traits, $0.hidden, $0.leftBehind) }
        let count = hidden.values.reduce(0) { $0 + $1.count }
        var result = traits?.shortcomings ?? []
        if count > 0, let example = hidden.values.first?.example {
            result.append("\(count) of the keys seen so far cannot be file names and are not shown, such as '\(example)'")
        }
        if left.count > 0 {
            result.append(
                "\(left.count) objects of folders that were moved stayed at their old place, such as '\(left.example)': "
                    + left.reason)
        }
        return result
    }

    package func connect() async throws(ProviderError) {
        if try await !meet() { try await becomeAcquainted(isPatient: false) }
        shared.withLock { $0.isJustMet = false }
        await removeOldUploads()
    }

    package func greet() async throws(ProviderError) {
        let isKnown = try await meet()
        acquaintance.postpone(isNeeded: !isKnown) { [weak self] () async throws(ProviderError) in
            guard let self else { return }
            if !isKnown { try await self.becomeAcquainted(isPatient: true) }
            await self.removeOldUploads()
        }
    }

    package func letGo() async { await acquaintance.end() }

    /// Returns whether it is known what the server does.
    private func meet() async throws(ProviderError) -> Bool {
        let reply = try await firstLook()
        let subject = "\(reply.header("Server") ?? "") \(location.origin)\(location.path(location.prefix))"
        probeTroubles.forget()
        shared.withLock { ($0.subject, $0.isJustMet) = (subject, true) }
        if let known = remembered, known.subject == subject {
            take(known)
            return true
        }
        guard !mayProbe else { return false }
        var traits = S3Traits.provisional
        traits.subject = subject
        note(traits)
        return true
    }

    private func becomeAcquainted(isPatient: Bool) async throws(ProviderError) {
        let probe = S3Probe(provider: self)
        var traits: S3Traits
        do throws(ProviderError) {
            traits = try await probe.run()
        } catch {
            if error.code == .cancelled { throw error }
            if isPatient, await probeTroubles.isPassing(error, isWell: { await probe.isWell() }) { throw error }
            traits = S3Probe.guess
            traits.brokeOff = true
            logger.warning("it could not be tried what the server does", metadata: ["reason": "\(error.description)"])
        }
        traits.subject = shared.withLock { $0.subject } ?? ""
        note(traits)
        // What was looked for where this server keeps nothing of the kind was not found.
        if !traits.keepsMarkers { details.forgetEverything() }
        for sentence in traits.shortcomings { logger.notice("the server lacks something", metadata: ["lack": "\(sentence)"]) }
    }

    private func take(_ traits: S3Traits) {
        shared.withLock { $0.traits = traits }
        client.usesKeepers.store(!traits.keepsMarkers, ordering: .relaxed)
    }

    private func note(_ traits: S3Traits) {
        take(traits)
        shared.withLock { $0.tried = clock.now() }
        if !traits.isGuess { traitsFile.write(traits) }
    }

    /// What a server does is tried again, when it had trouble or refused to be tried, but not all the time.
    func tryAgain() async {
        let now = clock.now()
        let guess = shared.withLock { shared -> S3Traits? in
            guard mayProbe, let traits = shared.traits, traits.isGuess else { return nil }
            let pause = traits.brokeOff ? S3Provider.pauseAfterTrouble : S3Provider.pauseAfterRefusal
            guard shared.tried.advanced(by: pause) <= now else { return nil }
            shared.tried = now
            return traits
        }
        guard let guess else { return }
        // What was found out before holds until the server can be tried.
        guard var found = try? await S3Probe(provider: self).run() else { return }
        found.subject = guess.subject
        note(found)
    }

    /// Tells whether the bucket is there and may be read.
    func firstLook() async throws(ProviderError) -> HTTPReply {
        let request = S3Request(.GET, nil, listingQuery(location.prefix, delimiter: true, max: 1))
        let reply = try await client.exchange(request)
        if reply.isSuccess {
            guard S3Listing.parse(reply.body) != nil else {
                throw ProviderError(.permanent, "'\(location.endpoint)' is no S3 server: its answer to a listing is none")
            }
            return reply
        }
        let refusal = client.refusal(reply)
        let error = refusal.error("the bucket '\(location.bucket)' cannot be listed")
        if refusal.code == "NoSuchBucket" || [301, 400].contains(refusal.status) {
            throw ProviderError(.permanent, error.message)
        }
        if refusal.status == 404 {
            throw ProviderError(.permanent, "\(error.message): '\(location.endpoint)' is no S3 server")
        }
        // The first thing that is asked tells more of the credentials than of the item.
        if error.code == .refused, refusal.status == 403 { throw ProviderError(.authenticate, error.message) }
        throw error
    }

    /// A server that was away when the mount began, and of which nothing is remembered, is tried when it is back.
    package func root() async throws(ProviderError) -> Item {
        let isJustMet = shared.withLock { shared in
            defer { shared.isJustMet = false }
            return shared.isJustMet
        }
        if !isJustMet {
            _ = try await firstLook()
            if shared.withLock({ $0.traits == nil && $0.subject == nil }) { try await greet() }
        }
        return try await folderItem([], parent: nil)
    }

    /// A path for people.
    func shown(_ path: [FileName]) -> String { "'/" + path.map(\.display).joined(separator: "/") + "'" }
}
