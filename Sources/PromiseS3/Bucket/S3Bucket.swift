import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// The objects of one bucket below a prefix, by their keys, and what is known of the server and of
/// them. What asks, and changes nothing: HeadObject for one object, ListObjectsV2 for what keys
/// there are. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html>,
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
///
/// Everything else of this module writes and reads through it, and keeps its own state.
final class S3Bucket: Sendable {
    /// A link's target is no longer than a path (path_resolution(7)).
    private static let targetByteCountMax: UInt64 = 4096

    let location: S3Location
    let client: S3Client
    let logger: Logger
    let clock: any TimeSource
    let pool: BlockingPool
    /// One writer of this process at a time for each key.
    let turns = PathTurns()
    /// What listings do not tell of objects.
    let details = KnownDetails()
    /// Nil until it is known what the server does.
    private let found = Mutex<S3Traits?>(nil)

    /// Reaches for nothing yet. Throws a sentence when the credentials cannot be read.
    init(
        location: S3Location, credentials: AccessKeySource, trust: ServerTrust,
        timeouts: HTTPTransport.Timeouts, logger: Logger, clock: any TimeSource
    ) throws(ProviderError) {
        self.location = location
        self.logger = logger
        self.clock = clock
        let pool = BlockingPool(name: "s3", threads: 4)
        self.pool = pool
        do throws(ProviderError) {
            client = try S3Client(
                location: location, credentials: credentials, trust: trust, timeouts: timeouts,
                pool: pool,
                logger: logger, clock: clock)
        } catch {
            pool.stop()
            throw error
        }
    }

    deinit { pool.stop() }

    // MARK: The server

    var traits: S3Traits { knownTraits ?? .provisional }

    /// Nil until it is known what the server does with what is written.
    var knownTraits: S3Traits? { found.withLock { $0 } }

    var isAcquainted: Bool { knownTraits != nil }

    func take(_ traits: S3Traits) {
        found.withLock { $0 = traits }
        client.usesKeepers.store(!traits.keepsMarkers, ordering: .relaxed)
    }

    var names: KeyNames {
        let traits = traits
        return KeyNames(
            prefix: location.prefix,
            escapes: traits.isGuess || traits.keepsControls ? [] : .controls)
    }

    /// Of a PUT, or of the end of an upload in parts.
    func conditions(_ expectation: Expectation) -> HTTPHeaders {
        switch expectation {
        case .nothing: ["If-None-Match": "*"]
        case .version(let version): ["If-Match": traits.tagText(version.rawValue)]
        case .anything: [:]
        }
    }

    // MARK: One object

    /// Throws `.notFound` when there is no such object.
    func status(of path: [FileName]) async throws(ProviderError) -> ObjectStatus {
        let key = names.key(path)
        guard let found = try await status(ofKey: key, "\(shown(path)) cannot be looked at") else {
            throw ProviderError(.notFound, "\(shown(path)) is not on the server")
        }
        details.note(key, stamp(found), found.details, size: found.size)
        return found
    }

    /// What listings will say of what a look found.
    func stamp(_ found: ObjectStatus) -> KnownDetails.Stamp {
        KnownDetails.Stamp(
            tag: found.tag, lastModified: traits.listsTrueTimes ? found.lastModified : nil)
    }

    /// Nil when there is no such object. Of a link, with its target.
    func status(ofKey key: [UInt8], _ what: String) async throws(ProviderError) -> ObjectStatus? {
        guard let found = try await anyStatus(ofKey: key, what), !HollowObject.isOne(found) else {
            return nil
        }
        return found
    }

    /// Also of what stands for nothing. Throws `.permanent` where the server says no size or no
    /// tag.
    func anyStatus(ofKey key: [UInt8], _ what: String) async throws(ProviderError) -> ObjectStatus?
    {
        let reply = try await client.exchange(S3Request(.HEAD, key))
        if reply.status == 404 { return nil }
        guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        var status = ObjectStatus(reply.headers)
        guard status.isWhole || key.last == KeyNames.slash else {
            throw ProviderError(
                .permanent, "\(what): the server says no size or no version of it that can be")
        }
        guard status.details.isLink, status.size <= S3Bucket.targetByteCountMax else {
            return status
        }
        let content = try await client.succeed(S3Request(.GET, key), what)
        guard EntityTag.opaque(content.header("ETag") ?? "") == status.tag, !content.body.isEmpty
        else {
            return status
        }
        // One that broke off leads elsewhere, and of one without a length nobody says that it did.
        guard UInt64(content.body.count) == status.size else {
            let counts = "\(content.body.count) bytes for \(status.size)"
            throw ProviderError(.retry, "\(what): the server sends \(counts)")
        }
        status.details.target = Array(content.body)
        return status
    }

    /// Throws `.conflict` or `.notFound` unless that is at a path.
    func check(_ expectation: Expectation, at path: [FileName]) async throws(ProviderError) {
        switch expectation {
        case .anything: return
        case .nothing:
            let found = try await status(
                ofKey: names.key(path), "\(shown(path)) cannot be looked at")
            if found != nil { throw ProviderError.taken(path) }
        case .version(let version):
            guard try await status(of: path).version == version else {
                throw ProviderError.taken(path)
            }
        }
    }

    // MARK: Keys

    func listingQuery(
        _ prefix: [UInt8], delimiter: Bool, max: Int, from: S3Listing.Next? = nil
    ) -> [QueryItem] {
        var query = [
            QueryItem("list-type", "2"), QueryItem("encoding-type", "url"),
            QueryItem("max-keys", "\(max)"),
        ]
        if !prefix.isEmpty { query.append(QueryItem("prefix", key: prefix)) }
        if delimiter { query.append(QueryItem("delimiter", "/")) }
        switch from {
        case .token(let token): query.append(QueryItem("continuation-token", token))
        case .after(let key): query.append(QueryItem("start-after", key: key))
        case nil: break
        }
        return query
    }

    /// One page. Throws `.retry` when the answer is not whole, `.permanent` where the server says
    /// no size or no tag of an object.
    func list(
        _ prefix: [UInt8], delimiter: Bool, max: Int = 1000, from: S3Listing.Next? = nil,
        _ what: String
    ) async throws(ProviderError) -> S3Listing {
        let query = listingQuery(prefix, delimiter: delimiter, max: max, from: from)
        let reply = try await client.succeed(S3Request(.GET, nil, query), what)
        // A reply cut off in the middle would look like a folder with fewer items.
        // What cannot be is not left out: it is there.
        guard var listing = await pool.run({ S3Listing.parse(reply.body) }) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        if let key = listing.impossible {
            throw ProviderError(
                .permanent,
                "\(what): the server says no size or no version of "
                    + "'\(escapedForDisplay(key.prefix(200)))' that can be")
        }
        if !traits.keepsMarkers { listing.readKeepers() }
        try listing.check(after: from, what)
        return listing
    }

    /// So many objects, or all there are, whose keys begin so. A server may send empty pages on the
    /// way to them.
    func first(_ count: Int, _ prefix: [UInt8], _ what: String) async throws(ProviderError)
        -> [S3Listing.Object]
    {
        var result: [S3Listing.Object] = []
        var next: S3Listing.Next?
        var turns = PageTurns()
        repeat {
            let page = try await list(prefix, delimiter: false, max: count, from: next, what)
            result += page.objects
            next = try page.turn(&turns)
        } while result.count < count && next != nil
        return result
    }

    private static let everythingMax = 4_000_000

    /// Every key that begins so, also those that cannot be shown. All are in memory at once.
    func everything(
        _ prefix: [UInt8], _ what: String
    ) async throws(ProviderError) -> [[UInt8]: S3Listing.Object] {
        var result: [[UInt8]: S3Listing.Object] = [:]
        try await forEachObject(prefix, what) { object throws(ProviderError) in
            guard result.count < S3Bucket.everythingMax else {
                throw ProviderError(.permanent, "\(what): it has more than \(S3Bucket.everythingMax) objects")
            }
            result[object.key] = object
        }
        return result
    }

    /// The same, a page at a time.
    func forEachObject(
        _ prefix: [UInt8], _ what: String, _ body: (S3Listing.Object) throws(ProviderError) -> Void
    ) async throws(ProviderError) {
        var next: S3Listing.Next?
        var turns = PageTurns()
        repeat {
            let page = try await list(prefix, delimiter: false, from: next, what)
            for object in page.objects { try body(object) }
            next = try page.turn(&turns)
        } while next != nil
    }

    /// Whether there is a key below a path.
    func isFolder(_ path: [FileName]) async throws(ProviderError) -> Bool {
        !(try await first(1, names.folderKey(path), "\(shown(path)) cannot be looked at").isEmpty)
    }

    /// Tells whether the bucket is there and may be read. Throws `.permanent` when it is not there
    /// or is none, `.authenticate` when it may not be read.
    func firstLook() async throws(ProviderError) -> HTTPReply {
        let request = S3Request(.GET, nil, listingQuery(location.prefix, delimiter: true, max: 1))
        let reply = try await client.exchange(request)
        if reply.isSuccess {
            let isListing = await pool.run(over: reply.body.count) {
                S3Listing.parse(reply.body) != nil
            }
            guard isListing else {
                let problem =
                    "'\(location.endpoint)' is no S3 server: its answer to a listing is none"
                throw ProviderError(.permanent, problem)
            }
            return reply
        }
        let refusal = client.refusal(reply)
        let error = refusal.error("the bucket '\(location.bucket)' cannot be listed")
        if refusal.code == "NoSuchBucket" || [301, 400].contains(refusal.status) {
            throw ProviderError(.permanent, error.message)
        }
        if refusal.status == 404 {
            throw ProviderError(
                .permanent, "\(error.message): '\(location.endpoint)' is no S3 server")
        }
        // The first thing that is asked tells more of the credentials than of the item.
        if error.code == .refused, refusal.status == 403 {
            throw ProviderError(.authenticate, error.message)
        }
        throw error
    }
}
