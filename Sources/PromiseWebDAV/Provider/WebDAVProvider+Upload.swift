import FoundationEssentials
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

// Content on its way up: aside and then moved to its name, which is one step for whoever looks; or, when it is small, straight
// over a file, under a lock, where a broken PUT leaves the old content; or in parts that the server joins over it.

extension WebDAVProvider {
    /// So much is on its way to the server before it has answered anything (RFC 6928): it looks whether a name is free and has
    /// the content at the same moment.
    private static let flightByteCountMax: UInt64 = 12 << 10
    /// Apache keeps what belongs to a file in another one, whose name is a little longer while it is being made.
    private static let plainNameByteCountMax = 200

    /// What is larger may take longer than a lock lasts, and another client's version would come in between.
    private static let straightByteCountMax: UInt64 = 4 << 20

    /// Returns the item as it is on the server now.
    func write(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?, target: [UInt8]?,
        parent: ItemIdentifier?
    ) async throws(ProviderError) -> Item {
        if traits.keepsProperties { await noteKeeping(in: path.dropLast()) }
        var written: ResourceStatus
        if expectation == .nothing, target == nil, isSmall(payload, path) {
            written = try await writeSmall(payload, at: path, metadata)
        } else if expectation == .nothing {
            written = try await writeNew(payload, at: path, metadata, target: target)
        } else if traits.putIsWhole && payload.size <= WebDAVProvider.straightByteCountMax {
            written = try await writeStraight(payload, at: path, expectation, metadata, target: target)
        } else if traits.joinsOverMatching == true, case .version(let version) = expectation {
            written = try await writeJoined(payload, at: path, over: version, metadata, target: target)
        } else {
            written = try await writeAside(payload, at: path, expectation, metadata, target: target)
        }
        if traits.tellsNumbers == true, written.number == nil { written.number = try await resource(at: path).number }
        // What the server does not say is as it was sent.
        if written.contentLength == nil { written.contentLength = payload.size }
        return try item(written, path: path, parent: parent)
    }

    private func isSmall(_ payload: Payload, _ path: [FileName]) -> Bool {
        let name = path.last.map { location.wireName($0) } ?? []
        return traits.putIsWhole && traits.putsOnlyNew && payload.size <= WebDAVProvider.flightByteCountMax
            && name.count <= WebDAVProvider.plainNameByteCountMax
    }

    /// Servers look whether a name is free and write then, and many do not say which tag the content got. So it is read again,
    /// which costs them no more than to be asked for the tag: what is there is ours, or another program's, which has won.
    private func writeSmall(
        _ payload: Payload, at path: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> ResourceStatus {
        guard case .bytes(let content) = try await body(of: payload) else { preconditionFailure("what is small is in memory") }
        let renewal = TagRenewal(self, ofNew: givenTags.number(of: content.readableBytesView))
        let (written, hasOwnTag) = try await turns.take(location.urlPath(path)) {
            () async throws(ProviderError) -> (ResourceStatus, Bool) in
            let written = try await putSmall(content, at: path, metadata)
            guard renewal.isItsOwn(written) else { return (written, false) }
            return (try await keep(metadata, nil, with: written, at: path, token: nil), true)
        }
        if hasOwnTag { return written }
        return try await writeStraight(
            payload, at: path, .version(WebDAVProvider.version(of: written)), metadata, target: nil, renewal)
    }

    private func putSmall(
        _ content: ByteBuffer, at path: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> ResourceStatus {
        let byteCount = UInt64(content.readableBytes)
        var headers = try await described(.bytes(content), metadata)
        headers.add(name: "If-None-Match", value: "*")
        let answer = try await put(.bytes(content), to: path, headers)
        if traits.putTellsTag == true, let tag = answer.header("ETag") {
            // Of what was sent: another program's content has another one, and is seen as such.
            let written = ResourceStatus(entityTag: tag, contentLength: byteCount)
            if traits.keepsProperties { return written }
            // Its time is the server's.
            let found = try await file(at: path)
            guard WebDAVProvider.version(of: found) == WebDAVProvider.version(of: written) else {
                throw madeByAnother(path)
            }
            return found
        }
        guard let reply = try await client.content(location.url(path), byteCount: byteCount) else { throw madeByAnother(path) }
        guard reply.status == 200 else { throw ProviderError(reply, "\(shown(path)) cannot be looked at") }
        guard reply.body == Data(content.readableBytesView) else { throw madeByAnother(path) }
        var written = ResourceStatus()
        written.entityTag = reply.header("ETag")
        written.lastModified = reply.header("Last-Modified")
        written.contentLength = byteCount
        if written.entityTag == nil || !traits.listsTags { written = try await resource(at: path) }
        return written
    }

    private func madeByAnother(_ path: [FileName]) -> ProviderError {
        ProviderError(.conflict, "\(shown(path)) was made by another program at the same moment")
    }

    /// A lock of a free name is no help: Apache loses some when several are made in one folder, and other servers make an
    /// empty file of it. MOVE refuses a name that is taken, but looks before it moves; so afterwards it is looked at what
    /// is there. Who finds another's content has lost, and nobody believes to have stored what is not there.
    private func writeNew(
        _ payload: Payload, at path: [FileName], _ metadata: Metadata?, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        try await withContentAside(payload, for: path, metadata, isSeenLater: true) { (aside, sent) async throws(ProviderError) in
            var written = sent
            if traits.moveKeepsTag {
                try await TagRenewal(self, of: payload, over: .nothing, isLink: target != nil).run(&written, at: path) {
                    () async throws(ProviderError) in try await send(payload, to: aside, [:], nil)
                }
                written = try await keep(metadata, target, with: written, at: aside, token: nil)
            }
            let kept = written
            return try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
                try await move(aside, to: path)
                let found = try await file(at: path)
                let isOurs =
                    traits.moveKeepsTag
                    ? WebDAVProvider.version(of: found) == WebDAVProvider.version(of: kept)
                    : found.contentLength == kept.contentLength
                guard isOurs else { throw madeByAnother(path) }
                try checkSize(found, payload, at: path)
                return traits.moveKeepsTag ? kept : try await keep(metadata, target, with: found, at: path, token: nil)
            }
        }
    }

    private func writeStraight(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?, target: [UInt8]?,
        _ given: TagRenewal? = nil
    ) async throws(ProviderError) -> ResourceStatus {
        let renewal = given ?? TagRenewal(self, of: payload, over: expectation, isLink: target != nil)
        return try await withTurn(at: path, expectation, byteCount: payload.size) { (turn) async throws(ProviderError) in
            var written = try await send(payload, to: path, turn.headers, nil)
            let again = WriteTurn(url: turn.url, token: turn.token).headers
            try await renewal.run(&written, at: path) { () async throws(ProviderError) in
                try await send(payload, to: path, again, nil)
            }
            return try await keep(metadata, target, with: written, at: path, token: turn.token)
        }
    }

    private func writeAside(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        try await withContentAside(payload, for: path, nil) { (aside, arrived) async throws(ProviderError) in
            var written = arrived
            let renewal = TagRenewal(self, of: payload, over: expectation, isLink: target != nil)
            try await renewal.run(&written, at: path) { () async throws(ProviderError) in
                try await send(payload, to: aside, [:], nil)
            }
            if traits.moveKeepsTag { written = try await keep(metadata, target, with: written, at: aside, token: nil) }
            let kept = written
            if case .version(let version) = expectation, traits.movesOnlyOverMatching == true, traits.moveKeepsTag {
                try await moveOver(aside, to: path, having: version)
                return kept
            }
            return try await withTurn(at: path, expectation) { (turn) async throws(ProviderError) in
                try await moveOver(aside, to: path, turn)
                if traits.moveKeepsTag { return kept }
                let moved = try await resource(at: path)
                guard moved.contentLength == kept.contentLength else {
                    throw ProviderError(.conflict, "\(shown(path)) was changed on the server at the same moment")
                }
                do throws(ProviderError) {
                    return try await keep(metadata, target, with: moved, at: path, token: turn.token)
                } catch {
                    // A server that removes what a move replaces ends its lock.
                    guard error.code == .conflict, turn.token != nil else { throw error }
                    return try await keep(metadata, target, with: moved, at: path, token: nil)
                }
            }
        }
    }

    /// Runs `body` with a place that has the whole content, and what the server says of it. When it fails, what is there is
    /// removed, unless a later attempt may go on with it.
    private func withContentAside<Value: Sendable>(
        _ payload: Payload, for path: [FileName], _ metadata: Metadata?, isSeenLater: Bool = false,
        _ body: ([FileName], ResourceStatus) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        if case .source(let source) = payload, mayBeParted(source) {
            return try await withPartsAside(source, for: path, metadata, body)
        }
        let aside = try await uploadPlace()
        note(aside, for: path)
        defer { note(aside, for: nil) }
        do throws(ProviderError) {
            return try await body(aside, try await sendAside(payload, to: aside, metadata, isSeenLater: isSeenLater))
        } catch {
            _ = await remove(aside)
            throw error
        }
    }

    func note(_ aside: [FileName], for path: [FileName]?) { shared.withLock { $0.asides[aside] = path } }

    /// False when it may still be there. Also when the caller was cancelled.
    func remove(_ aside: [FileName]) async -> Bool {
        let request = Task { [client, location] in try? await client.exchange(.DELETE, location.url(aside)) }
        guard let reply = await request.value else { return false }
        return reply.isSuccess || reply.status == 404
    }

    /// In one step: no look before it could be out of date.
    private func moveOver(_ aside: [FileName], to path: [FileName], having version: ContentVersion) async throws(ProviderError) {
        let url = location.url(path)
        let headers: HTTPHeaders = ["Destination": url, "Overwrite": "T", "If": WriteTurn.condition(url, has: version)]
        try await turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            let reply = try await client.exchange(.MOVE, location.url(aside), headers, timeout: .seconds(600))
            try await checkCondition(reply, version, at: path)
        }
    }

    /// Of a MOVE over a version of a file.
    func checkCondition(_ reply: HTTPReply, _ version: ContentVersion, at path: [FileName]) async throws(ProviderError) {
        if reply.status == 412 { try await check(.version(version), at: path) }
        guard reply.isSuccess, reply.status != 207 else {
            let status = reply.status == 412 ? 423 : reply.status
            throw ProviderError(
                status: status, retryAfter: reply.header("Retry-After"), "\(shown(path)) cannot be replaced", puts: true)
        }
    }

    private func moveOver(_ aside: [FileName], to path: [FileName], _ turn: WriteTurn) async throws(ProviderError) {
        let url = location.url(path)
        var headers: HTTPHeaders = ["Destination": url, "Overwrite": "T"]
        var asideToken: String?
        if let token = turn.token {
            if traits.moveNeedsSourceLock {
                let own = try await lock(aside).token
                asideToken = own
                headers.add(name: "If", value: "(<\(own)> <\(token)>)")
            } else {
                headers.add(name: "If", value: WriteTurn.condition(url, token))
            }
        }
        let reply: HTTPReply
        do throws(ProviderError) {
            reply = try await client.exchange(.MOVE, location.url(aside), headers, timeout: .seconds(600))
        } catch {
            if let asideToken { await unlock(aside, asideToken) }
            throw error
        }
        if let asideToken { await unlock(aside, asideToken) }
        guard reply.isSuccess, reply.status != 207 else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: turn.token != nil), retryAfter: reply.header("Retry-After"),
                "\(shown(path)) cannot be replaced", puts: true)
        }
    }

    /// One PUT, and what the server has then. Throws unless that has the size that was sent. `isSeenLater`: the caller looks at
    /// the size, so that the tag that the server names is enough.
    private func send(
        _ payload: Payload, to path: [FileName], _ conditions: HTTPHeaders, _ metadata: Metadata?, isSeenLater: Bool = false
    ) async throws(ProviderError) -> ResourceStatus {
        let body = try await body(of: payload)
        var headers = conditions
        headers.add(contentsOf: try await described(body, metadata))
        let reply = try await put(body, to: path, headers)
        if isSeenLater, traits.putTellsTag == true, traits.moveKeepsTag, traits.keepsProperties, let tag = reply.header("ETag") {
            var written = ResourceStatus()
            (written.entityTag, written.contentLength) = (tag, payload.size)
            return written
        }
        let written = try await file(at: path)
        try checkSize(written, payload, at: path)
        return written
    }

    private func checkSize(_ written: ResourceStatus, _ payload: Payload, at path: [FileName]) throws(ProviderError) {
        guard let found = written.contentLength, found != payload.size else { return }
        throw ProviderError(.retry, "\(shown(path)) cannot be uploaded: the server has \(found) bytes of \(payload.size)")
    }

    func put(
        _ body: RequestBody, to path: [FileName], _ conditions: HTTPHeaders
    ) async throws(ProviderError) -> HTTPReply {
        var headers = conditions
        headers.add(name: "Content-Type", value: "application/octet-stream")
        let reply = try await exchangeBeyondStaleLocks(.PUT, path, headers, body: body, timeout: .seconds(24 * 3600))
        // A multi-status here tells of a locked folder (RFC 4918, section 9.10.6).
        guard reply.isSuccess, reply.status != 207 else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: headers.contains(name: "If")),
                retryAfter: reply.header("Retry-After"),
                "\(shown(path)) cannot be uploaded", puts: true)
        }
        return reply
    }

    /// The folder for uploads may have been removed by somebody; then it is made again.
    private func sendAside(
        _ payload: Payload, to aside: [FileName], _ metadata: Metadata?, isSeenLater: Bool
    ) async throws(ProviderError) -> ResourceStatus {
        try await withUploadFolder { () async throws(ProviderError) in
            try await send(payload, to: aside, [:], metadata, isSeenLater: isSeenLater)
        }
    }

    /// What is told with a content, where the server takes that: its time, which others see then, and its hash. The time of a new
    /// file only: ownCloud makes tags of time and size, and two contents that have both the same would have one.
    private func described(_ body: RequestBody, _ metadata: Metadata?) async throws(ProviderError) -> HTTPHeaders {
        var headers = timeHeaders(metadata)
        if traits.takesChecksums == true {
            let digest = try await pool.run { () throws(ProviderError) in try ContentDigest.ownCloud(of: body) }
            headers.add(name: "OC-Checksum", value: digest)
        }
        return headers
    }

    func timeHeaders(_ metadata: Metadata?) -> HTTPHeaders {
        guard traits.takesTimes == true, let time = metadata?.modificationTime, time.rawValue > 0 else { return [:] }
        return ["X-OC-Mtime": "\(time.seconds)"]
    }

    func withUploadFolder<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) {
            return try await body()
        } catch {
            guard error.code == .notFound else { throw error }
            shared.withLock { $0.hasUploads = false }
            try await makeUploadFolder()
            return try await body()
        }
    }

    func body(of payload: Payload) async throws(ProviderError) -> RequestBody {
        switch payload {
        case .bytes(let bytes): return .bytes(ByteBuffer(bytes: bytes))
        case .source(let source):
            let file = FileBody(source: source, pool: pool)
            guard source.size <= FileBody.pieceByteCount else { return .file(file) }
            if source.size == 0 {
                try source.validate()
                return .bytes(ByteBuffer())
            }
            return .bytes(try await pool.run { () throws(ProviderError) in try file.read(at: 0, source.size) })
        }
    }

    func keep(
        _ metadata: Metadata?, _ target: [UInt8]?, with written: ResourceStatus, at path: [FileName], token: String?
    ) async throws(ProviderError) -> ResourceStatus {
        guard traits.keepsProperties else { return written }
        var written = written
        var sized = written
        // Its size is not what is kept.
        if sized.contentLength == nil { sized.contentLength = 0 }
        let now = try item(sized, path: path, parent: nil)
        let state = KeptState(metadata: metadata ?? now.metadata, target: target, version: now.version.rawValue)
        try await store(state, at: path, token: token)
        written.keptState = state.text
        return written
    }

    /// A name in the hidden folder that nobody else uses.
    func uploadPlace() async throws(ProviderError) -> [FileName] {
        try await makeUploadFolder()
        let number = shared.withLock { shared in
            shared.uploadCount += 1
            return shared.uploadCount
        }
        return WebDAVProvider.uploadFolder + [FileName(trusted: Array("\(session)-\(number)".utf8))]
    }

    static let uploadFolder = [ReservedName.folder, ReservedName.uploads]

    private func makeUploadFolder() async throws(ProviderError) {
        if shared.withLock({ $0.hasUploads }) { return }
        for path in [[ReservedName.folder], WebDAVProvider.uploadFolder] {
            let reply = try await client.exchange(.MKCOL, location.url(path, isFolder: true))
            guard reply.isSuccess || reply.status == 405 else {
                throw ProviderError(reply, "the folder \(shown(path)) for uploads cannot be made", puts: true)
            }
        }
        shared.withLock { $0.hasUploads = true }
    }
}
