import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

// Parts as ownCloud and Nextcloud take them: files in a folder beside the user's own, of which a MOVE makes one, in the order of
// their names. <https://github.com/owncloud/core/tree/master/apps/dav/lib/Upload>

extension WebDAVProvider {
    /// In a folder of chunks: all of them as one.
    static let joinedName = ".file"

    static func chunkName(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// For the MOVE that joins them.
    static func chunkHeaders(_ target: String, size: UInt64) -> HTTPHeaders {
        ["Destination": target, "Overwrite": "T", "OC-Total-Length": "\(size)"]
    }

    /// The folder of an upload.
    private func chunkURL(_ record: UploadJournal.Record) throws(ProviderError) -> String {
        guard let base = location.chunkURL else {
            throw ProviderError(.retry, "the server has no place for parts: what was uploaded of a file begins anew")
        }
        return base + record.upload + "/"
    }

    func makeChunkFolder(_ record: UploadJournal.Record) async throws(ProviderError) {
        let reply = try await client.exchange(.MKCOL, try chunkURL(record))
        guard reply.isSuccess || reply.status == 405 else {
            throw ProviderError(reply, "a folder for parts of a file cannot be made", puts: true)
        }
    }

    func removeChunks(_ record: UploadJournal.Record) async {
        // Also when the caller was cancelled.
        let request = Task { [client] in try? await client.exchange(.DELETE, try chunkURL(record)) }
        _ = await request.value
    }

    /// How many of the first ones are there whole.
    func arrivedChunks(_ record: UploadJournal.Record, _ plan: PartPlan) async throws(ProviderError) -> Int {
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/><getcontentlength/></prop></propfind>"
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        let reply = try await client.exchange(.PROPFIND, try chunkURL(record), headers, body: RequestBody(body))
        if reply.status == 404 { return 0 }
        let what = "the parts of a file cannot be looked at"
        guard reply.status == 207 else { throw ProviderError(reply, what) }
        guard let rows = await parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        var sizes: [String: UInt64] = [:]
        for row in rows {
            if let name = row.reference.split(separator: "/").last { sizes[String(name)] = row.contentLength }
        }
        return (1...plan.count).first { sizes[WebDAVProvider.chunkName($0)] != plan.range($0).count }.map { $0 - 1 } ?? plan.count
    }

    /// Nil when it is of another size.
    func chunk(_ number: Int, _ record: UploadJournal.Record, byteCount: UInt64) async throws(ProviderError) -> HTTPReply? {
        try await client.content(try chunkURL(record) + WebDAVProvider.chunkName(number), byteCount: byteCount)
    }

    func sendChunk(_ part: RequestBody, _ number: Int, _ record: UploadJournal.Record) async throws(ProviderError) -> HTTPReply {
        try await client.exchange(
            .PUT, try chunkURL(record) + WebDAVProvider.chunkName(number), ["Content-Type": "application/octet-stream"],
            body: part, timeout: .seconds(24 * 3600))
    }

    /// One of them that is missing or too short is told by the length.
    func joinChunks(
        _ record: UploadJournal.Record, to aside: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) {
        let headers = timeHeaders(metadata)
        try await withUploadFolder { () async throws(ProviderError) in
            let reply = try await requestJoin(record, to: aside, headers)
            guard reply.isSuccess, reply.status != 207 else {
                throw ProviderError(reply, "the parts of a file cannot be put together", puts: true)
            }
        }
    }

    private func requestJoin(
        _ record: UploadJournal.Record, to path: [FileName], _ more: HTTPHeaders
    ) async throws(ProviderError) -> HTTPReply {
        var headers = WebDAVProvider.chunkHeaders(location.url(path), size: record.size)
        headers.add(contentsOf: more)
        return try await client.exchange(
            .MOVE, try chunkURL(record) + WebDAVProvider.joinedName, headers, timeout: .seconds(3600))
    }

    // MARK: New content of a file

    /// Straight over the base version, in one step: the file stays the same one, with its number, its earlier versions and whom
    /// it is shared with. What a MOVE of another file replaces goes into the server's trash.
    func writeJoined(
        _ payload: Payload, at path: [FileName], over version: ContentVersion, _ metadata: Metadata?, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        var written = try await join(payload, at: path, over: version)
        let renewal = TagRenewal(self, of: payload, over: .version(version), isLink: target != nil)
        try await renewal.run(&written, at: path) { () async throws(ProviderError) in
            try await join(payload, at: path, over: version)
        }
        return try await keep(metadata, target, with: written, at: path, token: nil)
    }

    private func join(
        _ payload: Payload, at path: [FileName], over version: ContentVersion
    ) async throws(ProviderError) -> ResourceStatus {
        if case .source(let source) = payload, mayBeParted(source) {
            return try await withParts(source, for: path) { (record) async throws(ProviderError) in
                try await join(record, at: path, over: version)
            }
        }
        let record = UploadJournal.Record(
            key: location.urlPath(path), upload: try await uploadName(), size: payload.size, partByteCount: max(payload.size, 1),
            began: clock.now(), digests: [])
        do throws(ProviderError) {
            try await makeChunkFolder(record)
            let reply = try await sendChunk(try await body(of: payload), 1, record)
            guard reply.isSuccess else { throw ProviderError(reply, "\(shown(path)) cannot be uploaded", puts: true) }
            return try await join(record, at: path, over: version)
        } catch {
            await removeChunks(record)
            throw error
        }
    }

    private func join(
        _ record: UploadJournal.Record, at path: [FileName], over version: ContentVersion
    ) async throws(ProviderError) -> ResourceStatus {
        let condition = WriteTurn.condition(location.url(path), has: version)
        let reply = try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            try await requestJoin(record, to: path, ["If": condition])
        }
        try await checkCondition(reply, version, at: path)
        // The length was compared by the server.
        guard let tag = reply.header("ETag") ?? reply.header("OC-ETag") else { return try await file(at: path) }
        var written = ResourceStatus()
        (written.entityTag, written.contentLength) = (tag, record.size)
        return written
    }
}
