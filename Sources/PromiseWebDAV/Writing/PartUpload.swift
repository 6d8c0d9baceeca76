import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Large content on its way aside, in parts, on a server that takes parts. An upload that broke off
/// is gone on with, also by another daemon. What proves that the bytes aside are of this content:
/// every part's hash is in the journal before the part leaves, and no other content is ever sent to
/// that place; the server's sizes tell how many parts have arrived, and the last of them is read
/// back, as a server that lost power may have lost it.
struct PartUpload: Sendable {
    /// Smaller content goes in one request.
    private static let partCountMin: UInt64 = 4

    let resources: WebDAVResources
    let uploads: UploadFolder
    let sender: ContentSender
    let chunks: ChunkFolder
    let journal: UploadJournal
    /// Four of them are large.
    let partByteCount: UInt64
    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }
    private var traits: ServerTraits { resources.traits }

    func takes(_ source: any ContentSource) -> Bool {
        let traits = traits
        let isLarge = source.size > PartUpload.partCountMin * partByteCount
        return isLarge && traits.hasRanges && (traits.partWriting ?? .nothing) != .nothing
    }

    /// Runs `body` with the place that has all of it, and what the server says of that.
    func withAll<Value: Sendable>(
        _ source: any ContentSource, for path: [FileName], _ metadata: Metadata?,
        _ body: ([FileName], ResourceStatus) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        try await withSent(source, for: path) { (record) async throws(ProviderError) in
            resources.note(aside(record), for: path)
            defer { resources.note(aside(record), for: nil) }
            if traits.partWriting == .chunks, try await contentLength(aside(record)) == nil {
                try await chunks.join(record, to: aside(record), metadata)
            }
            return try await body(aside(record), try await whole(record, path))
        }
    }

    /// Runs `body` when the server has all parts.
    func withSent<Value: Sendable>(
        _ source: any ContentSource, for path: [FileName],
        _ body: (UploadJournal.Record) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let file = FileBody(source: source, pool: resources.pool)
        let (record, arrived) = try await begin(file, location.urlPath(path))
        do throws(ProviderError) {
            try await send(file, after: arrived, record)
            try source.validate()
            let value = try await body(record)
            await resources.pool.run { [journal] in journal.remove(record) }
            return value
        } catch {
            if !error.code.leavesUpload { await giveUp(record) }
            throw error
        }
    }

    private func aside(_ record: UploadJournal.Record) -> [FileName] {
        UploadFolder.path + [FileName(trusted: Array(record.upload.utf8))]
    }

    /// What cannot be removed is removed at a later start.
    func giveUp(_ record: UploadJournal.Record) async {
        if traits.partWriting == .chunks { await chunks.remove(record) }
        guard await uploads.remove(aside(record)) else { return }
        await resources.pool.run { [journal] in journal.remove(record) }
    }

    // MARK: Beginning

    /// An upload, and how many parts of it have arrived.
    private func begin(_ file: FileBody, _ key: String) async throws(ProviderError) -> (
        UploadJournal.Record, Int
    ) {
        if let record = journal.record(key) {
            if let resumed = try await resumed(record, file) {
                await resources.pool.run { [journal] in journal.add(resumed.record) }
                if resumed.record.upload != record.upload {
                    _ = await uploads.remove(aside(record))
                }
                return resumed
            }
            await giveUp(record)
        }
        let plan = PartPlan(size: file.source.size, wanted: partByteCount)
        let record = UploadJournal.Record(
            key: key, upload: try await uploads.name(), size: plan.size,
            partByteCount: plan.partByteCount, began: resources.clock.now(),
            digests: [])
        await resources.pool.run { [journal] in journal.add(record) }
        if traits.partWriting == .chunks { try await chunks.make(record) }
        return (record, 0)
    }

    /// Nil when nothing has arrived, or something else was sent there. A file goes on as a copy:
    /// the server may write for a while what is left of a request that broke off, and would do so
    /// in what was moved to its name meanwhile.
    private func resumed(
        _ record: UploadJournal.Record, _ file: FileBody
    ) async throws(ProviderError) -> (record: UploadJournal.Record, arrived: Int)? {
        guard record.fits(size: file.source.size, headers: []), let digests = record.digests,
            !digests.isEmpty
        else { return nil }
        let plan = PartPlan(size: record.size, partByteCount: record.partByteCount)
        for (index, digest) in digests.enumerated() {
            let range = plan.range(index + 1)
            let isSame = try await resources.pool.run { () throws(ProviderError) in
                UploadJournal.digest(of: try file.read(at: range.lower, range.count)) == digest
            }
            guard isSame else { return nil }
        }
        var resumed = record
        resumed.began = resources.clock.now().rawValue
        let isFile = try await contentLength(aside(record)) != nil
        guard isFile || traits.partWriting == .chunks else { return nil }
        var arrived = 0
        if isFile {
            resumed.upload = try await uploads.name()
            let headers: HTTPHeaders = [
                "Destination": location.url(aside(resumed)), "Overwrite": "F",
            ]
            let reply = try await client.exchange(
                .COPY, location.url(aside(record)), headers, timeout: .seconds(3600))
            guard reply.isSuccess, reply.status != 207 else { return nil }
            let byteCount = try await contentLength(aside(resumed)) ?? 0
            arrived = byteCount <= record.size ? min(plan.count(in: byteCount), digests.count) : 0
        } else {
            arrived = min(try await chunks.arrived(record, plan), digests.count)
        }
        if arrived > 0,
            try await hasPart(arrived, plan, resumed, digests[arrived - 1], isChunk: !isFile)
        {
            return (resumed, arrived)
        }
        if isFile { _ = await uploads.remove(aside(resumed)) }
        return nil
    }

    private func hasPart(
        _ number: Int, _ plan: PartPlan, _ record: UploadJournal.Record, _ digest: String,
        isChunk: Bool
    ) async throws(ProviderError) -> Bool {
        let range = plan.range(number)
        let headers: HTTPHeaders = ["Range": "bytes=\(range.lower)-\(range.upper - 1)"]
        let reply =
            isChunk
            ? try await chunks.chunk(number, record, byteCount: range.count)
            : try await client.content(location.url(aside(record)), headers, byteCount: range.count)
        guard let reply, reply.status == (isChunk ? 200 : 206) else { return false }
        return await resources.pool.run { UploadJournal.digest(of: ByteBuffer(bytes: reply.body)) }
            == digest
    }

    private func contentLength(_ aside: [FileName]) async throws(ProviderError) -> UInt64? {
        do throws(ProviderError) {
            return try await resources.file(at: aside).contentLength
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    // MARK: Parts

    private func send(
        _ file: FileBody, after arrived: Int, _ record: UploadJournal.Record
    ) async throws(ProviderError) {
        let plan = PartPlan(size: record.size, partByteCount: record.partByteCount)
        if arrived > 0 { file.source.noteSent(plan.range(arrived).upper) }
        try await plan.send(from: arrived + 1, load: { await load($0, plan, file, record) }) {
            (part, number) async throws(ProviderError) in
            try await send(.bytes(part, of: file.source), number, plan.range(number), record)
        }
    }

    private func load(
        _ number: Int, _ plan: PartPlan, _ file: FileBody, _ record: UploadJournal.Record
    ) async -> Result<ByteBuffer, ProviderError> {
        let range = plan.range(number)
        return await resources.pool.run { [journal] in
            do throws(ProviderError) {
                let part = try file.read(at: range.lower, range.count)
                journal.note(UploadJournal.digest(of: part), ofPart: number, of: record)
                return .success(part)
            } catch {
                return .failure(error)
            }
        }
    }

    private func send(
        _ part: RequestBody, _ number: Int, _ range: ByteRange, _ record: UploadJournal.Record
    ) async throws(ProviderError) {
        let (place, writing) = (aside(record), traits.partWriting ?? .nothing)
        let reply: HTTPReply
        if writing == .chunks {
            reply = try await chunks.send(part, number, record)
        } else if number == 1 {
            return try await uploads.with { () async throws(ProviderError) in
                _ = try await sender.put(part, to: place, [:])
            }
        } else {
            reply = try await client.exchange(
                writing.method, location.url(place), writing.headers(range, of: record.size),
                body: part,
                timeout: .seconds(24 * 3600))
        }
        // A file that was made has nothing where the parts before were.
        let isGone =
            [404, 409, 410, 412].contains(reply.status)
            || (reply.status == 201 && writing != .chunks)
        guard !isGone else {
            await giveUp(record)
            throw ProviderError(
                .retry,
                "what was uploaded of \(resources.shown(place)) is gone on the server: "
                    + "it begins anew"
            )
        }
        guard reply.isSuccess, reply.status != 207 else {
            let status = reply.status == 207 ? 423 : reply.status
            throw ProviderError(
                status: status, retryAfter: reply.header("Retry-After"),
                "\(resources.shown(place)) cannot be uploaded")
        }
    }

    /// What the server says of all parts together.
    private func whole(_ record: UploadJournal.Record, _ path: [FileName])
        async throws(ProviderError) -> ResourceStatus
    {
        let place = aside(record)
        let written = try await resources.file(at: place)
        guard written.contentLength == record.size else {
            // It does not do what it did when it was tried: another server may have taken its
            // place.
            resources.takesNoParts()
            await giveUp(record)
            throw ProviderError(
                .retry,
                "\(resources.shown(path)) cannot be uploaded: "
                    + "the server has \(written.contentLength ?? 0) bytes of \(record.size)"
            )
        }
        return written
    }
}

extension PartWriting {
    var method: HTTPMethod { self == .partialUpdate ? .PATCH : .PUT }

    /// Of a part of a file that is there, and only of such a file.
    func headers(_ range: ByteRange, of size: UInt64) -> HTTPHeaders {
        let span = "\(range.lower)-\(range.upper - 1)"
        return switch self {
        case .partialUpdate:
            [
                "If-Match": "*", "X-Update-Range": "bytes=\(span)",
                "Content-Type": "application/x-sabredav-partialupdate",
            ]
        default:
            [
                "If-Match": "*", "Content-Range": "bytes \(span)/\(size)",
                "Content-Type": "application/octet-stream",
            ]
        }
    }
}
