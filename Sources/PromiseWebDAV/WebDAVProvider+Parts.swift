import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

// Large content on its way aside, in parts, on a server that takes parts. An upload that broke off is gone on with, also by
// another daemon. What proves that the bytes aside are of this content: every part's hash is in the journal before the part
// leaves, and no other content is ever sent to that place, whatever else may be on its way to it still; the server's sizes tell
// how many parts have arrived, and the last of them is read back, as a server that lost power may have lost it.

extension WebDAVProvider {
    /// Smaller content goes in one request.
    private static let partCountMin: UInt64 = 4

    func mayBeParted(_ source: any ContentSource) -> Bool {
        let traits = traits
        let isLarge = source.size > WebDAVProvider.partCountMin * partByteCount
        return isLarge && traits.hasRanges && (traits.partWriting ?? .nothing) != .nothing
    }

    /// Runs `body` with the place that has all of it, and what the server says of that.
    func withPartsAside<Value: Sendable>(
        _ source: any ContentSource, for path: [FileName], _ metadata: Metadata?,
        _ body: ([FileName], ResourceStatus) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let file = FileBody(source: source, pool: pool)
        let (record, arrived) = try await begin(file, location.urlPath(path))
        do throws(ProviderError) {
            try await send(file, after: arrived, record)
            try source.validate()
            if traits.partWriting == .chunks, try await contentLength(aside(record)) == nil {
                try await joinChunks(record, to: aside(record), metadata)
            }
            let value = try await body(aside(record), try await whole(record, path))
            await pool.run { [uploads] in uploads.remove(record) }
            return value
        } catch {
            if !error.code.leavesUpload { await giveUp(record) }
            throw error
        }
    }

    private func aside(_ record: UploadJournal.Record) -> [FileName] {
        WebDAVProvider.uploadFolder + [FileName(trusted: Array(record.upload.utf8))]
    }

    /// What cannot be removed is removed at a later start.
    func giveUp(_ record: UploadJournal.Record) async {
        if traits.partWriting == .chunks { await removeChunks(record) }
        guard await remove(aside(record)) else { return }
        await pool.run { [uploads] in uploads.remove(record) }
    }

    // MARK: Beginning

    /// An upload, and how many parts of it have arrived.
    private func begin(_ file: FileBody, _ key: String) async throws(ProviderError) -> (UploadJournal.Record, Int) {
        if let record = uploads.record(key) {
            if let arrived = try await arrived(record, file), let next = try await goOn(with: record, arrived) {
                return (next, arrived)
            }
            await giveUp(record)
        }
        let plan = PartPlan(size: file.source.size, wanted: partByteCount)
        let record = UploadJournal.Record(
            key: key, upload: try await uploadPlace().last?.display ?? "", size: plan.size, partByteCount: plan.partByteCount,
            began: clock.now(), digests: [])
        await pool.run { [uploads] in uploads.add(record) }
        if traits.partWriting == .chunks { try await makeChunkFolder(record) }
        return (record, 0)
    }

    /// A part that was sent before may be on its way still, and would change the file when it has its name, or put a first part
    /// in the place of all. So the upload goes on with a copy, to which nothing was sent yet. Nil when it cannot.
    private func goOn(
        with record: UploadJournal.Record, _ arrived: Int
    ) async throws(ProviderError) -> UploadJournal.Record? {
        if traits.partWriting == .chunks {
            await pool.run { [uploads, clock] in uploads.touch(record, at: clock.now()) }
            if arrived == 0 { try await makeChunkFolder(record) }
            return record
        }
        guard arrived > 0 else { return nil }
        var next = record
        next.upload = try await uploadPlace().last?.display ?? ""
        next.began = clock.now().rawValue
        let headers: HTTPHeaders = ["Destination": location.url(aside(next)), "Overwrite": "F"]
        let reply = try await client.exchange(.COPY, location.url(aside(record)), headers, timeout: .seconds(600))
        guard reply.isSuccess, reply.status != 207 else { return nil }
        await pool.run { [uploads, next] in uploads.add(next) }
        _ = await remove(aside(record))
        return next
    }

    /// Nil when something else was sent there, or is there.
    private func arrived(_ record: UploadJournal.Record, _ file: FileBody) async throws(ProviderError) -> Int? {
        guard record.fits(size: file.source.size, headers: []), let digests = record.digests else { return nil }
        let plan = PartPlan(size: record.size, partByteCount: record.partByteCount)
        for (index, digest) in digests.enumerated() {
            let range = plan.range(index + 1)
            let isSame = try await pool.run { () throws(ProviderError) in
                UploadJournal.digest(of: try file.read(at: range.lower, range.count)) == digest
            }
            guard isSame else { return nil }
        }
        guard !digests.isEmpty else { return 0 }
        let there = try await contentLength(aside(record))
        guard there ?? 0 <= record.size else { return nil }
        let areChunks = there == nil && traits.partWriting == .chunks
        let last = min(areChunks ? try await arrivedChunks(record, plan) : plan.count(in: there ?? 0), digests.count)
        guard last > 0 else { return 0 }
        let range = plan.range(last)
        let headers: HTTPHeaders = ["Range": "bytes=\(range.lower)-\(range.upper - 1)"]
        let reply =
            areChunks
            ? try await chunk(last, record) : try await client.exchange(.GET, location.url(aside(record)), headers)
        guard reply.status == (areChunks ? 200 : 206) else { return nil }
        let found = await pool.run { UploadJournal.digest(of: ByteBuffer(bytes: reply.body)) }
        return found == digests[last - 1] ? last : nil
    }

    private func contentLength(_ aside: [FileName]) async throws(ProviderError) -> UInt64? {
        do throws(ProviderError) {
            return try await file(at: aside).contentLength
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    // MARK: Parts

    /// One after the other; the next one is read and hashed meanwhile.
    private func send(_ file: FileBody, after arrived: Int, _ record: UploadJournal.Record) async throws(ProviderError) {
        let plan = PartPlan(size: record.size, partByteCount: record.partByteCount)
        guard arrived < plan.count else { return }
        var current = await load(arrived + 1, plan, file, record)
        for number in (arrived + 1)...plan.count {
            async let next = plan.readsAhead ? load(number + 1, plan, file, record) : nil
            if let part = current { try await send(part.get(), number, plan.range(number), record) }
            current = await next
            if current == nil { current = await load(number + 1, plan, file, record) }
        }
    }

    /// Nil after the last one.
    private func load(
        _ number: Int, _ plan: PartPlan, _ file: FileBody, _ record: UploadJournal.Record
    ) async -> Result<ByteBuffer, ProviderError>? {
        guard number <= plan.count else { return nil }
        let range = plan.range(number)
        return await pool.run { [uploads] in
            do throws(ProviderError) {
                let part = try file.read(at: range.lower, range.count)
                uploads.note(UploadJournal.digest(of: part), ofPart: number, of: record)
                return .success(part)
            } catch {
                return .failure(error)
            }
        }
    }

    private func send(
        _ part: ByteBuffer, _ number: Int, _ range: ByteRange, _ record: UploadJournal.Record
    ) async throws(ProviderError) {
        let (place, writing) = (aside(record), traits.partWriting ?? .nothing)
        let reply: HTTPReply
        if writing == .chunks {
            reply = try await sendChunk(part, number, record)
        } else if number == 1 {
            return try await withUploadFolder { () async throws(ProviderError) in try await put(.bytes(part), to: place, [:]) }
        } else {
            reply = try await client.exchange(
                writing.method, location.url(place), writing.headers(range, of: record.size), body: .bytes(part),
                timeout: .seconds(24 * 3600))
        }
        // A file that was made has nothing where the parts before were.
        let isGone = [404, 409, 410, 412].contains(reply.status) || (reply.status == 201 && writing != .chunks)
        guard !isGone else {
            await giveUp(record)
            throw ProviderError(.retry, "what was uploaded of \(shown(place)) is gone on the server: it begins anew")
        }
        guard reply.isSuccess, reply.status != 207 else {
            let status = reply.status == 207 ? 423 : reply.status
            throw ProviderError(status: status, retryAfter: reply.header("Retry-After"), "\(shown(place)) cannot be uploaded")
        }
    }

    /// What the server says of all parts together.
    private func whole(_ record: UploadJournal.Record, _ path: [FileName]) async throws(ProviderError) -> ResourceStatus {
        let place = aside(record)
        let written = try await file(at: place)
        guard written.contentLength == record.size else {
            // It does not do what it did when it was tried: another server may have taken its place.
            shared.withLock { $0.traits?.partWriting = .nothing }
            await giveUp(record)
            throw ProviderError(
                .retry,
                "\(shown(path)) cannot be uploaded: the server has \(written.contentLength ?? 0) bytes of \(record.size)")
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
            ["If-Match": "*", "X-Update-Range": "bytes=\(span)", "Content-Type": "application/x-sabredav-partialupdate"]
        default: ["If-Match": "*", "Content-Range": "bytes \(span)/\(size)", "Content-Type": "application/octet-stream"]
        }
    }
}
