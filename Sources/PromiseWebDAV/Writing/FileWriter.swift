import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Gives a place its content: aside and then moved to its name, which is one step for whoever
/// looks; or, when it is small, straight over a file, under a lock, where a broken PUT leaves the
/// old content; or in parts that the server joins over it.
///
/// Throws `.conflict` when something else is there than was expected, `.notFound` when what was to
/// be replaced is gone.
struct FileWriter: Sendable {
    /// So much is on its way to the server before it has answered anything (RFC 6928): it looks
    /// whether a name is free and has the content at the same moment.
    private static let flightByteCountMax: UInt64 = 12 << 10
    /// Apache keeps what belongs to a file in another one, whose name is a little longer while it
    /// is being made.
    private static let plainNameByteCountMax = 200
    /// What is larger may take longer than a lock lasts, and another client's version would come in
    /// between.
    private static let straightByteCountMax: UInt64 = 4 << 20

    let resources: WebDAVResources
    let items: WebDAVItems
    let locks: WriteLocks
    let properties: PropertyWriter
    let uploads: UploadFolder
    let sender: ContentSender
    let chunks: ChunkFolder
    let parts: PartUpload
    let mover: ResourceMover
    let givenTags = GivenTags()
    private var client: WebDAVClient { resources.client }
    var location: WebDAVLocation { resources.location }
    var traits: ServerTraits { resources.traits }

    /// Returns the item as it is on the server now.
    func write(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?,
        keepsRights: Bool = false, target: [UInt8]?, parent: ItemIdentifier?
    ) async throws(ProviderError) -> Item {
        if traits.keepsProperties { await properties.noteKeeping(in: path.dropLast()) }
        var written: ResourceStatus
        if expectation == .nothing, target == nil, isSmall(payload, path) {
            written = try await writeSmall(payload, at: path, metadata)
        } else if expectation == .nothing {
            written = try await writeNew(payload, at: path, metadata, target: target)
        } else if traits.putIsWhole && payload.size <= FileWriter.straightByteCountMax {
            written = try await writeStraight(
                payload, at: path, expectation, metadata, keepsRights: keepsRights, target: target)
        } else if traits.joinsOverMatching == true, case .version(let version) = expectation {
            written = try await writeJoined(
                payload, at: path, over: version, metadata, keepsRights: keepsRights,
                target: target)
        } else {
            written = try await writeAside(
                payload, at: path, expectation, metadata, keepsRights: keepsRights, target: target)
        }
        if traits.tellsNumbers == true, written.number == nil {
            written.number = try await resources.resource(at: path).number
        }
        // What the server does not say is as it was sent.
        if written.contentLength == nil { written.contentLength = payload.size }
        return try items.item(written, path: path, parent: parent)
    }

    private func isSmall(_ payload: Payload, _ path: [FileName]) -> Bool {
        let name = path.last.map { location.wireName($0) } ?? []
        return traits.putIsWhole && traits.putsOnlyNew
            && payload.size <= FileWriter.flightByteCountMax
            && name.count <= FileWriter.plainNameByteCountMax
    }

    // MARK: What is new

    /// Servers look whether a name is free and write then, and many do not say which tag the
    /// content got. So it is read again, which costs them no more than to be asked for the tag:
    /// what is there is ours, or another program's, which has won.
    private func writeSmall(
        _ payload: Payload, at path: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> ResourceStatus {
        let body = try await sender.body(of: payload)
        guard case .bytes(let content, _) = body else {
            preconditionFailure("what is small is in memory")
        }
        let renewal = TagRenewal(
            resources, givenTags, ofNew: givenTags.number(of: content.readableBytesView))
        let (written, hasOwnTag) = try await resources.turns.take(location.urlPath(path)) {
            () async throws(ProviderError) -> (ResourceStatus, Bool) in
            let written = try await putSmall(body, content, at: path, metadata)
            guard renewal.isItsOwn(written) else { return (written, false) }
            return (
                try await properties.keep(metadata, nil, with: written, at: path, token: nil), true
            )
        }
        if hasOwnTag { return written }
        return try await writeStraight(
            payload, at: path, .version(written.version), metadata, target: nil, renewal)
    }

    private func putSmall(
        _ body: RequestBody, _ content: ByteBuffer, at path: [FileName], _ metadata: Metadata?
    ) async throws(ProviderError) -> ResourceStatus {
        let byteCount = UInt64(content.readableBytes)
        var headers = try await sender.described(body, metadata)
        headers.add(name: "If-None-Match", value: "*")
        let answer = try await sender.put(body, to: path, headers)
        if traits.putTellsTag == true, let tag = answer.header("ETag") {
            // Of what was sent: another program's content has another one, and is seen as such.
            let written = ResourceStatus(entityTag: tag, contentLength: byteCount)
            if traits.keepsProperties { return written }
            // Its time is the server's.
            let found = try await resources.file(at: path)
            guard found.version == written.version else {
                throw madeByAnother(path)
            }
            return found
        }
        guard let reply = try await client.content(location.url(path), byteCount: byteCount) else {
            throw madeByAnother(path)
        }
        guard reply.status == 200 else {
            throw ProviderError(reply, "\(resources.shown(path)) cannot be looked at")
        }
        guard reply.body == Data(content.readableBytesView) else { throw madeByAnother(path) }
        var written = ResourceStatus()
        written.entityTag = reply.header("ETag")
        written.lastModified = reply.header("Last-Modified")
        written.contentLength = byteCount
        if written.entityTag == nil || !traits.listsTags {
            written = try await resources.resource(at: path)
        }
        return written
    }

    private func madeByAnother(_ path: [FileName]) -> ProviderError {
        ProviderError(
            .conflict, "\(resources.shown(path)) was made by another program at the same moment")
    }

    /// A lock of a free name is no help: Apache loses some when several are made in one folder, and
    /// other servers make an empty file of it. MOVE refuses a name that is taken, but looks before
    /// it moves; so afterwards it is looked at what is there. Who finds another's content has lost,
    /// and nobody believes to have stored what is not there.
    private func writeNew(
        _ payload: Payload, at path: [FileName], _ metadata: Metadata?, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        try await withContentAside(payload, for: path, metadata, isSeenLater: true) {
            (aside, sent) async throws(ProviderError) in
            var written = sent
            if traits.moveKeepsTag {
                try await TagRenewal(
                    resources, givenTags, of: payload, over: .nothing, isLink: target != nil
                ).run(&written, at: path) {
                    (_) async throws(ProviderError) in
                    try await sender.send(payload, to: aside, [:], nil)
                }
                written = try await properties.keep(
                    metadata, target, with: written, at: aside, token: nil)
            }
            let kept = written
            return try await resources.turns.take(location.urlPath(path)) {
                () async throws(ProviderError) in
                try await mover.move(aside, to: path)
                let found = try await resources.file(at: path)
                let isOurs =
                    traits.moveKeepsTag
                    ? found.version == kept.version
                    : found.contentLength == kept.contentLength
                guard isOurs else { throw madeByAnother(path) }
                try sender.checkSize(found, payload, at: path)
                return traits.moveKeepsTag
                    ? kept
                    : try await properties.keep(metadata, target, with: found, at: path, token: nil)
            }
        }
    }

    // MARK: What replaces something

    private func writeStraight(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?,
        keepsRights: Bool = false, target: [UInt8]?, _ given: TagRenewal? = nil
    ) async throws(ProviderError) -> ResourceStatus {
        let renewal =
            given
            ?? TagRenewal(
                resources, givenTags, of: payload, over: expectation, isLink: target != nil)
        return try await locks.withTurn(at: path, expectation, byteCount: payload.size) {
            (turn) async throws(ProviderError) in
            var written = try await sender.send(payload, to: path, turn.headers, nil)
            try await renewal.run(&written, at: path) { (before) async throws(ProviderError) in
                var again = WriteTurn(url: turn.url, token: turn.token)
                // Without a lock others may have written since.
                let ours = Expectation.version(before.version)
                if turn.token == nil { again.conditions = ours.conditions(traits) }
                return try await sender.send(payload, to: path, again.headers, nil)
            }
            let kept = try turn.kept(metadata, keepsRights: keepsRights, path, items)
            return try await properties.keep(
                kept, target, with: written, at: path, token: turn.token)
        }
    }

    /// What is kept with it is stored last: a mode that others give while a large content is on its
    /// way is to stay.
    private func writeAside(
        _ payload: Payload, at path: [FileName], _ expectation: Expectation, _ metadata: Metadata?,
        keepsRights: Bool, target: [UInt8]?
    ) async throws(ProviderError) -> ResourceStatus {
        try await withContentAside(payload, for: path, nil) {
            (aside, arrived) async throws(ProviderError) in
            var written = arrived
            let renewal = TagRenewal(
                resources, givenTags, of: payload, over: expectation, isLink: target != nil)
            try await renewal.run(&written, at: path) { (_) async throws(ProviderError) in
                try await sender.send(payload, to: aside, [:], nil)
            }
            let sent = written
            if case .version(let version) = expectation, traits.movesOnlyOverMatching == true,
                traits.moveKeepsTag
            {
                let kept = try await rights(metadata, keepsRights: keepsRights, at: path)
                let result = try await properties.keep(
                    kept, target, with: sent, at: aside, token: nil)
                try await moveOver(aside, to: path, having: version)
                return result
            }
            return try await locks.withTurn(at: path, expectation) {
                (turn) async throws(ProviderError) in
                let kept = try turn.kept(metadata, keepsRights: keepsRights, path, items)
                guard traits.moveKeepsTag else {
                    try await moveOver(aside, to: path, turn)
                    return try await keepMoved(kept, target, of: sent, at: path, turn)
                }
                let result = try await properties.keep(
                    kept, target, with: sent, at: aside, token: nil)
                try await moveOver(aside, to: path, turn)
                return result
            }
        }
    }

    /// With what was moved to its place, and has another tag there.
    private func keepMoved(
        _ metadata: Metadata?, _ target: [UInt8]?, of sent: ResourceStatus, at path: [FileName],
        _ turn: WriteTurn
    ) async throws(ProviderError) -> ResourceStatus {
        let moved = try await resources.resource(at: path)
        guard moved.contentLength == sent.contentLength else {
            throw ProviderError(
                .conflict, "\(resources.shown(path)) was changed on the server at the same moment")
        }
        do throws(ProviderError) {
            return try await properties.keep(
                metadata, target, with: moved, at: path, token: turn.token)
        } catch {
            // A server that removes what a move replaces ends its lock.
            guard error.code == .conflict, turn.token != nil else { throw error }
            return try await properties.keep(metadata, target, with: moved, at: path, token: nil)
        }
    }

    /// What is to be kept where no turn has looked: mode and owners are those of what is there now.
    private func rights(
        _ metadata: Metadata?, keepsRights: Bool, at path: [FileName]
    ) async throws(ProviderError) -> Metadata? {
        guard keepsRights, metadata != nil, traits.keepsProperties else { return metadata }
        let found = try await resources.resourceIfAny(at: path)
        let turn = WriteTurn(url: location.url(path), found: found)
        return try turn.kept(metadata, keepsRights: true, path, items)
    }

    /// Runs `body` with a place that has the whole content, and what the server says of it. When it
    /// fails, what is there is removed, unless a later attempt may go on with it.
    private func withContentAside<Value: Sendable>(
        _ payload: Payload, for path: [FileName], _ metadata: Metadata?, isSeenLater: Bool = false,
        _ body: ([FileName], ResourceStatus) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        if case .source(let source) = payload, parts.takes(source) {
            return try await parts.withAll(source, for: path, metadata, body)
        }
        let aside = try await uploads.place()
        resources.note(aside, for: path)
        defer { resources.note(aside, for: nil) }
        do throws(ProviderError) {
            return try await body(
                aside,
                try await sender.sendAside(payload, to: aside, metadata, isSeenLater: isSeenLater))
        } catch {
            _ = await uploads.remove(aside)
            throw error
        }
    }

    /// In one step: no look before it could be out of date.
    private func moveOver(_ aside: [FileName], to path: [FileName], having version: ContentVersion)
        async throws(ProviderError)
    {
        let url = location.url(path)
        let headers: HTTPHeaders = [
            "Destination": url, "Overwrite": "T", "If": WriteTurn.condition(url, has: version),
        ]
        try await resources.turns.take(location.urlPath(path)) { () async throws(ProviderError) in
            let reply = try await client.exchange(
                .MOVE, location.url(aside), headers, timeout: .seconds(600))
            try await checkCondition(reply, version, at: path)
        }
    }

    /// Of a MOVE over a version of a file.
    func checkCondition(_ reply: HTTPReply, _ version: ContentVersion, at path: [FileName])
        async throws(ProviderError)
    {
        if reply.status == 412 { try await resources.check(.version(version), at: path) }
        guard reply.isSuccess, reply.status != 207 else {
            let status = reply.status == 412 ? 423 : reply.status
            throw ProviderError(
                status: status, retryAfter: reply.header("Retry-After"),
                "\(resources.shown(path)) cannot be replaced", puts: true)
        }
    }

    private func moveOver(_ aside: [FileName], to path: [FileName], _ turn: WriteTurn)
        async throws(ProviderError)
    {
        let url = location.url(path)
        var headers: HTTPHeaders = ["Destination": url, "Overwrite": "T"]
        var asideToken: String?
        if let token = turn.token {
            if traits.moveNeedsSourceLock {
                let own = try await locks.lock(aside).token
                asideToken = own
                headers.add(name: "If", value: "(<\(own)> <\(token)>)")
            } else {
                headers.add(name: "If", value: WriteTurn.condition(url, token))
            }
        }
        let reply: HTTPReply
        do throws(ProviderError) {
            reply = try await client.exchange(
                .MOVE, location.url(aside), headers, timeout: .seconds(600))
        } catch {
            if let asideToken { await locks.unlock(aside, asideToken) }
            throw error
        }
        if let asideToken { await locks.unlock(aside, asideToken) }
        guard reply.isSuccess, reply.status != 207 else {
            throw ProviderError(
                status: WriteTurn.status(of: reply, isLocked: turn.token != nil),
                retryAfter: reply.header("Retry-After"),
                "\(resources.shown(path)) cannot be replaced", puts: true)
        }
    }
}
