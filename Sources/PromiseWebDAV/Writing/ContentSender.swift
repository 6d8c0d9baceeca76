import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Sends a content to a place: one PUT (RFC 4918, section 9.7), and a look at what the server has
/// then.
struct ContentSender: Sendable {
    let resources: WebDAVResources
    let locks: WriteLocks
    let uploads: UploadFolder
    private var traits: ServerTraits { resources.traits }

    /// One PUT, and what the server has then. Throws unless that has the size that was sent.
    /// `isSeenLater`: the caller looks at the size, so that the tag that the server names is
    /// enough.
    func send(
        _ payload: Payload, to path: [FileName], _ conditions: HTTPHeaders, _ metadata: Metadata?,
        isSeenLater: Bool = false
    ) async throws(ProviderError) -> ResourceStatus {
        let body = try await body(of: payload)
        var headers = conditions
        headers.add(contentsOf: try await described(body, metadata))
        let reply = try await put(body, to: path, headers)
        if isSeenLater, traits.putTellsTag == true, traits.moveKeepsTag, traits.keepsProperties,
            let tag = reply.header("ETag")
        {
            var written = ResourceStatus()
            (written.entityTag, written.contentLength) = (tag, payload.size)
            return written
        }
        let written = try await resources.file(at: path)
        try checkSize(written, payload, at: path)
        // Under a lock nobody else writes. Others' content may have the size of ours.
        if traits.putTellsTag == true, !conditions.contains(name: "If"), let told = reply.header("ETag"),
            let found = written.entityTag, EntityTag.opaque(told) != EntityTag.opaque(found)
        {
            throw resources.changed(path)
        }
        return written
    }

    func checkSize(_ written: ResourceStatus, _ payload: Payload, at path: [FileName])
        throws(ProviderError)
    {
        guard let found = written.contentLength, found != payload.size else { return }
        throw ProviderError(
            .retry,
            "\(resources.shown(path)) cannot be uploaded: "
                + "the server has \(found) bytes of \(payload.size)"
        )
    }

    func put(
        _ body: RequestBody, to path: [FileName], _ conditions: HTTPHeaders
    ) async throws(ProviderError) -> HTTPReply {
        var headers = conditions
        headers.add(name: "Content-Type", value: "application/octet-stream")
        let reply = try await locks.exchangeBeyondStaleLocks(
            .PUT, path, headers, body: body, timeout: .seconds(24 * 3600))
        // A multi-status here tells of a locked folder (RFC 4918, section 9.10.6).
        guard reply.isSuccess, reply.status != 207 else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: headers.contains(name: "If")),
                retryAfter: reply.header("Retry-After"),
                "\(resources.shown(path)) cannot be uploaded", puts: true)
        }
        return reply
    }

    func sendAside(
        _ payload: Payload, to aside: [FileName], _ metadata: Metadata?, isSeenLater: Bool
    ) async throws(ProviderError) -> ResourceStatus {
        try await uploads.with { () async throws(ProviderError) in
            try await send(payload, to: aside, [:], metadata, isSeenLater: isSeenLater)
        }
    }

    /// What is told with a content, where the server takes that: its time, which others see then,
    /// and its hash. The time of a new file only: ownCloud makes tags of time and size, and two
    /// contents that have both the same would have one.
    func described(_ body: RequestBody, _ metadata: Metadata?) async throws(ProviderError)
        -> HTTPHeaders
    {
        var headers = timeHeaders(metadata)
        if traits.takesChecksums == true {
            let digest = try await resources.pool.run { () throws(ProviderError) in
                try ContentDigest.ownCloud(of: body)
            }
            headers.add(name: "OC-Checksum", value: digest)
        }
        return headers
    }

    func timeHeaders(_ metadata: Metadata?) -> HTTPHeaders {
        guard traits.takesTimes == true, let time = metadata?.modificationTime, time.rawValue > 0
        else { return [:] }
        return ["X-OC-Mtime": "\(time.seconds)"]
    }

    func body(of payload: Payload) async throws(ProviderError) -> RequestBody {
        try await payload.body(inMemoryUpTo: FileBody.pieceByteCount, pool: resources.pool)
    }
}
