import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// A write under way.
struct ObjectWrite: Sendable {
    var key: [UInt8]
    var path: [FileName]
    var expectation: Expectation
    /// What is kept with the content.
    var headers: HTTPHeaders
}

/// Large content on its way up, in parts: CreateMultipartUpload, UploadPart,
/// CompleteMultipartUpload. What has arrived is asked of the server (ListParts) and compared with
/// what is here, so that an upload goes on where it broke off, also in another daemon, and never
/// with parts of another content.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html>
struct MultipartUpload: Sendable {
    private struct Part: Sendable {
        var number: Int
        var tag: String
    }

    /// Of parts: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
    private static let numbers = 1...10_000

    let bucket: S3Bucket
    let journal: UploadJournal
    private var client: S3Client { bucket.client }
    private var pool: BlockingPool { bucket.pool }

    /// Returns the tag of the object. Throws `.conflict` or `.notFound` when something else than
    /// was expected is there; an upload that may go on later is left at the server.
    func write(_ source: any ContentSource, _ written: ObjectWrite) async throws(ProviderError)
        -> String
    {
        let what = "\(shown(written.path)) cannot be uploaded"
        // What cannot succeed is not begun.
        try await bucket.check(written.expectation, at: written.path)
        let (record, arrived) = try await begin(source, written, what)
        do throws(ProviderError) {
            let plan = PartPlan(size: source.size, partByteCount: record.partByteCount)
            let file = FileBody(source: source, pool: pool)
            let parts = try await send(plan, file, arrived, record, written.key, what)
            try source.validate()
            let tag = try await complete(parts, record, written, what)
            await pool.run { [journal] in journal.remove(record) }
            return tag
        } catch {
            if !error.code.leavesUpload { await abort(record, written.key) }
            throw error
        }
    }

    /// For CompleteMultipartUpload: the tags of all parts, in order.
    static func completion(_ tags: [String]) -> ByteBuffer {
        let rows = tags.enumerated().map { index, tag in
            "<Part><PartNumber>\(index + 1)</PartNumber><ETag>&quot;\(tag)&quot;</ETag></Part>"
        }
        return ByteBuffer(
            string: "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                + rows.joined() + "</CompleteMultipartUpload>")
    }

    // MARK: Beginning

    /// An upload, and the tags of the parts of it that have arrived.
    private func begin(
        _ source: any ContentSource, _ written: ObjectWrite, _ what: String
    ) async throws(ProviderError) -> (UploadJournal.Record, [Int: String]) {
        let key = S3Location.encoded(written.key)
        let headers = written.headers.map { "\($0): \($1)" }
        if let record = journal.record(key) {
            if record.fits(size: source.size, headers: headers),
                let arrived = try await parts(of: record, written.key, what)
            {
                await pool.run { [journal, clock = bucket.clock] in
                    journal.touch(record, at: clock.now())
                }
                return (record, arrived)
            }
            await abort(record, written.key)
        }
        let request = S3Request(.POST, written.key, [QueryItem("uploads")], written.headers)
        let reply = try await client.succeed(request, what)
        guard let upload = S3Document.parse(reply.body)?.values["UploadId"], !upload.isEmpty else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        let plan = PartPlan(size: source.size)
        let record = UploadJournal.Record(
            key: key, upload: upload, size: source.size, partByteCount: plan.partByteCount,
            headers: headers,
            began: bucket.clock.now())
        await pool.run { [journal] in journal.add(record) }
        return (record, [:])
    }

    /// Nil when the server no longer knows the upload. Pages of parts go forward by their numbers,
    /// so a server has no more of them than parts; what else it says is no next page, and what is
    /// not heard of is sent again.
    private func parts(
        of record: UploadJournal.Record, _ key: [UInt8], _ what: String
    ) async throws(ProviderError) -> [Int: String]? {
        var result: [Int: String] = [:]
        var marker: Int?
        repeat {
            var query = [QueryItem("uploadId", record.upload)]
            if let marker { query.append(QueryItem("part-number-marker", "\(marker)")) }
            let reply = try await client.exchange(S3Request(.GET, key, query))
            if reply.status == 404 { return nil }
            guard reply.isSuccess else { throw client.refusal(reply).error(what) }
            guard
                let page = await pool.run(
                    over: reply.body.count, { MultipartUpload.parts(of: reply) })
            else {
                throw ProviderError(.retry, "\(what): the server's answer is not whole")
            }
            result.merge(page.tags) { $1 }
            let told = page.next
            let isNext = told.map { MultipartUpload.numbers.contains($0) && $0 > marker ?? 0 }
            marker = isNext == true ? told : nil
        } while marker != nil
        return result
    }

    /// What a page of ListParts tells, and where the next one begins. Nil when it is cut off.
    private static func parts(of reply: HTTPReply) -> (tags: [Int: String], next: Int?)? {
        guard let document = S3Document.parse(reply.body) else { return nil }
        var tags: [Int: String] = [:]
        for row in document.rows where row.name == "Part" {
            guard let number = row.values["PartNumber"].flatMap({ Int($0) }),
                numbers.contains(number),
                // Another tag is not that of what is here.
                let tag = row.values["ETag"].map(EntityTag.opaque), PartDigest.isDigest(tag)
            else { continue }
            tags[number] = tag
        }
        guard document.values["IsTruncated"] == "true" else { return (tags, nil) }
        return (tags, document.values["NextPartNumberMarker"].flatMap { Int($0) })
    }

    // MARK: Parts

    private func send(
        _ plan: PartPlan, _ file: FileBody, _ arrived: [Int: String],
        _ record: UploadJournal.Record, _ key: [UInt8],
        _ what: String
    ) async throws(ProviderError) -> [Part] {
        var parts: [Part] = []
        try await plan.send(from: 1, load: { await load(plan.range($0), file, arrived[$0]) }) {
            (part, number) async throws(ProviderError) in
            parts.append(try await send(part, number, arrived[number], record, key, what))
        }
        return parts
    }

    private struct LoadedPart: Sendable {
        var body: ByteBuffer
        var source: any ContentSource
        /// Of what has arrived before, or where the request itself is not signed with the content's
        /// hash and leaves this machine.
        var digest: (header: String, tag: String)?
        var hash: String?
    }

    private func load(
        _ range: ByteRange, _ file: FileBody, _ arrived: String?
    ) async -> Result<LoadedPart, ProviderError> {
        let (signsHash, hasChecksum) = (client.signsContent, client.checksParts)
        return await pool.run {
            do throws(ProviderError) {
                let body = try file.read(at: range.lower, range.count)
                var part = LoadedPart(body: body, source: file.source)
                if arrived != nil || hasChecksum { part.digest = PartDigest.of(part.body) }
                if signsHash { part.hash = Signature.hash(part.body) }
                return .success(part)
            } catch {
                return .failure(error)
            }
        }
    }

    private func send(
        _ part: LoadedPart, _ number: Int, _ arrived: String?, _ record: UploadJournal.Record,
        _ key: [UInt8], _ what: String
    ) async throws(ProviderError) -> Part {
        if let arrived, arrived == part.digest?.tag {
            part.source.noteSent(UInt64(part.body.readableBytes))
            return Part(number: number, tag: arrived)
        }
        var request = S3Request(
            .PUT, key, [QueryItem("partNumber", "\(number)"), QueryItem("uploadId", record.upload)])
        if let digest = part.digest {
            request.headers.add(name: "Content-MD5", value: digest.header)
        }
        (request.body, request.source) = (part.body, part.source)
        request.bodyHash = part.hash
        request.isRepeatable = true
        let reply = try await client.succeed(request, what)
        guard let tag = reply.header("ETag").map(EntityTag.opaque) ?? part.digest?.tag else {
            throw ProviderError(.retry, "\(what): the server does not name the part that it has")
        }
        return Part(number: number, tag: tag)
    }

    // MARK: Ending

    private func complete(
        _ parts: [Part], _ record: UploadJournal.Record, _ written: ObjectWrite, _ what: String
    ) async throws(ProviderError) -> String {
        let traits = bucket.traits
        let isConditional =
            written.expectation == .nothing
            ? traits.completionRefusesTaken : traits.completionMatches
        if !isConditional { try await checkPlace(written, what) }
        var request = S3Request(.POST, written.key, [QueryItem("uploadId", record.upload)])
        request.headers.add(name: "Content-Type", value: "application/xml")
        if isConditional { request.headers.add(contentsOf: bucket.conditions(written.expectation)) }
        request.body = await pool.run { MultipartUpload.completion(parts.map(\.tag)) }
        var reply = try await client.exchange(request)
        if reply.status == 412, isConditional, written.expectation == .nothing,
            try await makesWay(written.key, what)
        {
            reply = try await client.exchange(request)
        }
        guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        // A server that works long on it says that it succeeds before it knows.
        guard let document = S3Document.parse(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        if document.name == "Error" {
            throw S3Refusal(status: 500, code: document.values["Code"]).error(what)
        }
        // Some servers do not tell the tag, and none of those that honour no condition tells who
        // was last.
        let found = try await bucket.status(of: written.path)
        let told = EntityTag.opaque(document.values["ETag"] ?? "")
        let expected = told.isEmpty ? PartDigest.ofParts(parts.map(\.tag)) : told
        guard found.size == record.size,
            expected == nil || !traits.completionTellsTag || found.tag == expected
        else {
            throw ProviderError.taken(written.path)
        }
        return found.tag
    }

    /// The look right before an end that honours no condition. A hollow object holds the place for
    /// what another machine is about to put there: the end would go over it, so it is waited for.
    private func checkPlace(_ written: ObjectWrite, _ what: String) async throws(ProviderError) {
        let hollows = HollowObjects(bucket: bucket)
        guard written.expectation == .nothing, hollows.areUsed else {
            return try await bucket.check(written.expectation, at: written.path)
        }
        if case .something = try await hollows.outlast(written.key, what) {
            throw ProviderError.taken(written.path)
        }
    }

    /// Whether only a hollow object had the key, which has it no more.
    private func makesWay(_ key: [UInt8], _ what: String) async throws(ProviderError) -> Bool {
        let hollows = HollowObjects(bucket: bucket)
        switch try await hollows.outlast(key, what) {
        case .nobody: return true
        case .hollow: return try await hollows.remove(key, what)
        case .something: return false
        }
    }

    /// An upload that cannot be given up is tried again at a later start.
    private func abort(_ record: UploadJournal.Record, _ key: [UInt8]) async {
        let reply = await withCancellationShield { [client] in
            try? await client.exchange(
                S3Request(.DELETE, key, [QueryItem("uploadId", record.upload)]))
        }
        guard let reply, reply.isSuccess || reply.status == 404 else { return }
        await pool.run { [journal] in journal.remove(record) }
    }

    /// Those that nobody went on with. Others' are not ours to give up.
    func removeOld() async {
        for record in journal.old(at: bucket.clock.now()) {
            guard let key = PercentEncoding.decoded(record.key) else { continue }
            await abort(record, key)
        }
    }
}
