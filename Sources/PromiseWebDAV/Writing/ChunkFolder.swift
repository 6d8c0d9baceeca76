import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// Parts as ownCloud and Nextcloud take them: files in a folder beside the user's own, of which a
/// MOVE makes one, in the order of their names.
/// <https://github.com/owncloud/core/tree/master/apps/dav/lib/Upload>
struct ChunkFolder: Sendable {
    let resources: WebDAVResources
    let sender: ContentSender
    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }

    /// In a folder of chunks: all of them as one.
    static let joinedName = ".file"

    static func name(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// For the MOVE that joins them.
    static func headers(_ target: String, size: UInt64) -> HTTPHeaders {
        ["Destination": target, "Overwrite": "T", "OC-Total-Length": "\(size)"]
    }

    /// The folder of an upload.
    private func url(_ record: UploadJournal.Record) throws(ProviderError) -> String {
        guard let base = location.chunkURL else {
            throw ProviderError(
                .retry, "the server has no place for parts: what was uploaded of a file begins anew"
            )
        }
        return base + record.upload + "/"
    }

    func make(_ record: UploadJournal.Record) async throws(ProviderError) {
        let reply = try await client.exchange(.MKCOL, try url(record))
        guard reply.isSuccess || reply.status == 405 else {
            throw ProviderError(reply, "a folder for parts of a file cannot be made", puts: true)
        }
    }

    func remove(_ record: UploadJournal.Record) async {
        await withCancellationShield { [client] in
            _ = try? await client.exchange(.DELETE, try url(record))
        }
    }

    /// How many of the first ones are there whole.
    func arrived(_ record: UploadJournal.Record, _ plan: PartPlan) async throws(ProviderError)
        -> Int
    {
        let body =
            "<propfind xmlns=\"DAV:\"><prop><resourcetype/><getcontentlength/></prop></propfind>"
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        let reply = try await client.exchange(
            .PROPFIND, try url(record), headers, body: RequestBody(body))
        if reply.status == 404 { return 0 }
        let what = "the parts of a file cannot be looked at"
        guard reply.status == 207 else { throw ProviderError(reply, what) }
        guard let rows = await resources.parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        var sizes: [String: UInt64] = [:]
        for row in rows {
            if let name = row.reference.split(separator: "/").last {
                sizes[String(name)] = row.contentLength
            }
        }
        return (1...plan.count).first { sizes[ChunkFolder.name($0)] != plan.range($0).count }.map {
            $0 - 1
        } ?? plan.count
    }

    /// Nil when it is of another size.
    func chunk(_ number: Int, _ record: UploadJournal.Record, byteCount: UInt64)
        async throws(ProviderError) -> HTTPReply?
    {
        try await client.content(try url(record) + ChunkFolder.name(number), byteCount: byteCount)
    }

    func send(_ part: RequestBody, _ number: Int, _ record: UploadJournal.Record)
        async throws(ProviderError) -> HTTPReply
    {
        try await client.exchange(
            .PUT, try url(record) + ChunkFolder.name(number),
            ["Content-Type": "application/octet-stream"],
            body: part, timeout: .seconds(24 * 3600))
    }

    /// One of them that is missing or too short is told by the length.
    func join(
        _ record: UploadJournal.Record, to aside: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) {
        let headers = sender.timeHeaders(metadata)
        try await sender.uploads.with { () async throws(ProviderError) in
            let reply = try await requestJoin(record, to: aside, headers)
            guard reply.isSuccess, reply.status != 207 else {
                throw ProviderError(reply, "the parts of a file cannot be put together", puts: true)
            }
        }
    }

    func requestJoin(
        _ record: UploadJournal.Record, to path: [FileName], _ more: HTTPHeaders
    ) async throws(ProviderError) -> HTTPReply {
        var headers = ChunkFolder.headers(location.url(path), size: record.size)
        headers.add(contentsOf: more)
        return try await client.exchange(
            .MOVE, try url(record) + ChunkFolder.joinedName, headers, timeout: .seconds(3600))
    }
}
