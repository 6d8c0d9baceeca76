import AsyncHTTPClient
import Foundation
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Finds out what a server really does, by doing it once in a folder of its own below `.promisefs`. About 80 requests.
struct ServerProbe: Sendable {
    let provider: WebDAVProvider
    var resources: WebDAVResources { provider.resources }
    var client: WebDAVClient { resources.client }
    var location: WebDAVLocation { provider.location }

    init(provider: WebDAVProvider) { self.provider = provider }

    /// Traits of a server where nothing may be written are a guess. Throws when the call was cancelled, and when the server had
    /// trouble: what it does not do now it may do later.
    func run() async throws(ProviderError) -> ServerTraits {
        do throws(ProviderError) {
            return try await tryEverything()
        } catch {
            guard error.code == .refused || error.code == .notFound else { throw error }
            // Who refuses everything refuses for another reason than that nothing may be written.
            guard await ServerPresence(provider.resources).isShown else { throw error }
            return ServerTraits()
        }
    }

    /// Whether it shows its root and takes a file, so that trouble is of something else.
    func isWell() async -> Bool {
        guard await ServerPresence(provider.resources).isShown else { return false }
        do throws(ProviderError) {
            let file = try await provider.uploads.place()
            guard try await put("one", file).isSuccess else { return false }
            return try await exchange(.DELETE, file).isSuccess
        } catch {
            return false
        }
    }

    /// Whether the server numbers its files; not on one where nothing may be written.
    func runForNumbers() async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            let file = try await provider.uploads.place()
            guard try await put("one", file).isSuccess else { return false }
            let isTold = try await tellsNumbers(file)
            _ = try await exchange(.DELETE, file)
            return isTold
        } catch {
            guard error.code == .refused || error.code == .notFound else { throw error }
            return false
        }
    }

    private func tryEverything() async throws(ProviderError) -> ServerTraits {
        var traits = ServerTraits()
        let file = try await provider.uploads.place()
        let start = resources.clock.uptime()
        let first = try await put("one", file)
        let putDuration = resources.clock.uptime() - start
        guard first.isSuccess else { throw ProviderError(first, "a file to try the server with cannot be made") }
        traits.isGuess = false
        traits.listsTags = try await listsTag(file)
        traits.putTellsTag = try await isListed(first.header("ETag"), file)
        try await tryNames(&traits)
        try await tryTwins(&traits)
        traits.hasRanges = try await sendsRanges(file)
        let parts = try await provider.uploads.place()
        if traits.hasRanges { traits.partWriting = try await writesParts(parts) } else { traits.partWriting = .nothing }
        // Waits a moment, which a part that broke off needs, too.
        traits.putIsWhole = try await keepsOldContent(file, after: max(.milliseconds(200), putDuration * 10))
        if traits.partWriting != .nothing, try await !keepsParts(parts) { traits.partWriting = .nothing }
        _ = try await exchange(.DELETE, parts)
        traits.putsOnlyNew = try await putsOnlyNew(file)
        traits.takesTimes = try await takesTimes(file)
        traits.takesChecksums = try await takesChecksums(file)
        // Of no server but those that take times is it known that it does.
        traits.previews = traits.takesTimes == true ? try await findPreviews(file) : .nowhere
        traits.tagsTellContent = try await tellsContent(file)
        traits.keepsProperties = try await keepsProperty(file)
        traits.deletesOnlyMatching = try await deletesOnlyMatching(file)
        traits.deletesOnlyTagged = try await deletesOnlyTagged(file)
        traits.hasQuota = try await unlessTrouble { () async throws(ProviderError) in try await provider.quota() } != nil
        let escaped = Array(file.dropLast()) + [FileName(trusted: (file.last?.bytes ?? []) + Array(", é".utf8))]
        try await tryLocks(escaped, &traits)
        _ = try await exchange(.DELETE, escaped)
        if !traits.locks { try await tryConditions(file, &traits) }
        traits.honoursOverwrite = try await refusesToMoveOver(file)
        if !traits.locks, traits.listsTags { traits.movesOnlyOverMatching = try await movesOnlyOverMatching(file) }
        if traits.partWriting == .chunks, traits.listsTags { traits.joinsOverMatching = try await joinsOverMatching(file) }
        traits.tellsNumbers = try await tellsNumbers(file)
        traits.moveKeepsTag = try await movesWithTag(file, &traits)
        traits.tellsNews = try await tellsNews(traits)
        return traits
    }

    // MARK: Requests

    /// A reply that tells what the server does; throws what tells only that it has trouble now.
    func exchange(
        _ method: HTTPMethod, _ path: [FileName], _ headers: HTTPHeaders = [:], body: RequestBody? = nil,
        mayBeLocked: Bool = false
    ) async throws(ProviderError) -> HTTPReply {
        let reply = try await client.exchange(method, location.url(path), headers, body: body)
        if reply.isSuccess || (mayBeLocked && reply.status == 423) { return reply }
        let error = ProviderError(reply, "the server cannot be tried with \(method)")
        if ServerProbe.isTrouble(error) { throw error }
        return reply
    }

    /// Nil when the server does not do this, which is an answer; throws when it has trouble.
    func unlessTrouble<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value?
    ) async throws(ProviderError) -> Value? {
        do throws(ProviderError) {
            return try await body()
        } catch {
            if ServerProbe.isTrouble(error) { throw error }
            return nil
        }
    }

    static func isTrouble(_ error: ProviderError) -> Bool {
        switch error.code {
        case .refused, .notFound, .conflict, .stale, .permanent: false
        default: true
        }
    }

    func put(
        _ text: String, _ path: [FileName], _ headers: HTTPHeaders = [:], mayBeLocked: Bool = false
    ) async throws(ProviderError) -> HTTPReply {
        try await exchange(.PUT, path, headers, body: RequestBody(text), mayBeLocked: mayBeLocked)
    }

    func content(_ path: [FileName]) async throws(ProviderError) -> String {
        String(decoding: try await exchange(.GET, path).body, as: UTF8.self)
    }

    // MARK: Questions

    private func listsTag(_ file: [FileName]) async throws(ProviderError) -> Bool {
        guard let listed = try await resources.resource(at: file).entityTag else { return false }
        return try await exchange(.HEAD, file).header("ETag").map { EntityTag.opaque($0) == EntityTag.opaque(listed) } ?? true
    }

    private func isListed(_ tag: String?, _ file: [FileName]) async throws(ProviderError) -> Bool {
        guard let tag, let listed = try await resources.resource(at: file).entityTag
        else { return false }
        return EntityTag.opaque(tag) == EntityTag.opaque(listed)
    }

    private func sendsRanges(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let reply = try await exchange(.GET, file, ["Range": "bytes=1-1"])
        return reply.status == 206 && reply.body == Data("n".utf8)
    }

    /// Breaks off a PUT in the middle and looks at what is there a moment later. Servers notice in their own time: Apache in a
    /// few milliseconds, Nextcloud's PHP is still at work when Apache has long given up.
    private func keepsOldContent(_ file: [FileName], after pause: Duration) async throws(ProviderError) -> Bool {
        let body = HTTPClientRequest.Body.stream(BrokenBody(), length: .known(Int64(BrokenBody.announcedByteCount)))
        await client.breakOff(.PUT, location.url(file), body)
        try? await Task.sleep(for: pause)
        let isWhole = try await content(file) == "one"
        if !isWhole { _ = try await put("one", file) }
        return isWhole
    }

    private func putsOnlyNew(_ taken: [FileName]) async throws(ProviderError) -> Bool {
        let free = try await provider.uploads.place()
        let isMade = try await put("new", free, ["If-None-Match": "*"]).isSuccess
        let isRefused = try await put("two", taken, ["If-None-Match": "*"]).status == 412
        let isKept = try await content(taken) == "one"
        if !isKept { _ = try await put("one", taken) }
        guard isMade else { return false }
        let isThere = try await content(free) == "new"
        _ = try await exchange(.DELETE, free)
        return isRefused && isKept && isThere
    }

    /// Another content and back: the tag of a clock would not come back. Ends with the content of before.
    private func tellsContent(_ file: [FileName]) async throws(ProviderError) -> Bool {
        var tags: [ContentVersion] = []
        for text in ["one", "two", "one"] {
            _ = try await put(text, file)
            tags.append((try await resources.resource(at: file)).version)
        }
        return tags[0] == tags[2] && tags[0] != tags[1]
    }

    func keepsProperty(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let metadata = Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
        let state = KeptState(metadata: metadata, version: "1")
        let kept = try await unlessTrouble { () async throws(ProviderError) in
            try await provider.properties.store(state, at: file, token: nil)
            return try await resources.resource(at: file).keptState
        }
        return kept == state.text
    }

    /// With a name that is escaped in addresses: servers may take it for another one in conditions (nginx).
    private func tryLocks(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) {
        _ = try await put("one", file)
        traits.locksEndWithItem = false
        guard let token = try await lock(file) else { return }
        let isGuarded = try await put("two", file, mayBeLocked: true).status == 423
        let opens = try await put("one", file, ["If": WriteTurn.condition(location.url(file), token)], mayBeLocked: true)
        traits.locks = isGuarded && opens.isSuccess
        await provider.locks.unlock(file, token)
        guard traits.locks else { return }
        traits.locksEndWithItem = try await locksEndWithItem()
        // A name that is free.
        let other = try await provider.uploads.place()
        guard let free = try await lock(other) else {
            traits.locks = false
            return
        }
        let made = try await unlessTrouble { () async throws(ProviderError) in
            try await resources.resource(at: other)
        }
        traits.lockMakesFile = made != nil
        let headers: HTTPHeaders = [
            "Destination": location.url(other), "Overwrite": "T", "If": WriteTurn.condition(location.url(other), free),
        ]
        let source = try await provider.uploads.place()
        _ = try await put("one", source)
        traits.moveNeedsSourceLock = try await !exchange(.MOVE, source, headers, mayBeLocked: true).isSuccess
        await provider.locks.unlock(other, free)
        for path in [source, other] { _ = try await exchange(.DELETE, path) }
    }

    private func locksEndWithItem() async throws(ProviderError) -> Bool {
        let file = try await provider.uploads.place()
        _ = try await put("one", file)
        guard let token = try await lock(file) else { return false }
        let condition = WriteTurn.condition(location.url(file), token)
        let isRemoved = try await exchange(.DELETE, file, ["If": condition], mayBeLocked: true).isSuccess
        let isFree = try await put("one", file, mayBeLocked: true).isSuccess
        await provider.locks.unlock(file, token)
        _ = try await exchange(.DELETE, file)
        return isRemoved && isFree
    }

    /// The token, or nil where there are no locks.
    private func lock(_ path: [FileName]) async throws(ProviderError) -> String? {
        try await unlessTrouble { () async throws(ProviderError) in
            try await provider.locks.lock(path).token
        }
    }

    /// What was at the target must be there still, whatever the server says.
    private func refusesToMoveOver(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let (source, taken) = (try await provider.uploads.place(), file)
        _ = try await put("two", source)
        let reply = try await exchange(.MOVE, source, ["Destination": location.url(taken), "Overwrite": "F"])
        let isKept = try await content(taken) == "one"
        _ = try await exchange(.DELETE, source)
        return !reply.isSuccess && isKept
    }

    /// Ends with the content of before.
    private func movesOnlyOverMatching(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let source = try await provider.uploads.place()
        _ = try await put("two", source)
        let tag = (try await resources.resource(at: file)).version
        var answers: [Bool] = []
        for version in [ContentVersion("wrong"), tag] {
            let condition = WriteTurn.condition(location.url(file), has: version)
            let headers: HTTPHeaders = ["Destination": location.url(file), "Overwrite": "T", "If": condition]
            let isMoved = try await exchange(.MOVE, source, headers).isSuccess
            let isThere = try await content(file) == "two"
            answers.append(isMoved && isThere)
        }
        _ = try await exchange(.DELETE, source)
        _ = try await put("one", file)
        return answers == [false, true]
    }

    /// One that goes with a file, and that the next file at its place has not. What the other questions are about stays as it is.
    private func tellsNumbers(_ file: [FileName]) async throws(ProviderError) -> Bool {
        guard try await number(file) != nil else { return false }
        let (one, other) = (try await provider.uploads.place(), try await provider.uploads.place())
        _ = try await put("one", one)
        let before = try await number(one)
        let headers: HTTPHeaders = ["Destination": location.url(other), "Overwrite": "F"]
        let isMoved = try await exchange(.MOVE, one, headers).isSuccess
        let after = try await number(other)
        _ = try await put("one", one)
        let next = try await number(one)
        for path in [one, other] { _ = try await exchange(.DELETE, path) }
        return isMoved && before != nil && after == before && next != nil && next != before
    }

    func number(_ path: [FileName]) async throws(ProviderError) -> String? {
        let number = WebDAVResources.numberProperty
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/>\(number)</prop></propfind>"
        return try await resources.propfind(path, depth: "0", body: body).first?.resource.number
    }

    private func tryConditions(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) {
        let refusesTaken = try await put("one", file, ["If-None-Match": "*"]).status == 412
        let refusesWrong = try await put("one", file, ["If-Match": "\"wrong\""]).status == 412
        let tag = (try await resources.resource(at: file)).version.rawValue
        let takesRight = try await put("one", file, ["If-Match": "\"\(tag)\""]).isSuccess
        traits.honoursConditionsOnPut = refusesTaken && refusesWrong && takesRight
    }

    /// A folder that came in the place of a file is no match either, and is not removed with all that is in it.
    private func deletesOnlyMatching(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let wrong: HTTPHeaders = ["If-Match": "\"wrong\""]
        let isRefused = try await exchange(.DELETE, file, wrong).status == 412
        let isKept = try await content(file) == "one"
        if !isKept { _ = try await put("one", file) }
        let folder = try await provider.uploads.place()
        guard isRefused, isKept, try await exchange(.MKCOL, folder).isSuccess else { return false }
        let isFolderRefused = try await !exchange(.DELETE, folder, wrong).isSuccess
        _ = try await exchange(.DELETE, folder)
        return isFolderRefused
    }

    /// The same by `If`, also of a file that is just made: Apache matches no tag of such a one in `If-Match`.
    /// Ends with the content of before.
    private func deletesOnlyTagged(_ file: [FileName]) async throws(ProviderError) -> Bool {
        func condition(_ path: [FileName], _ version: ContentVersion) -> HTTPHeaders {
            ["If": WriteTurn.condition(location.url(path), has: version)]
        }
        let isRefused = try await exchange(.DELETE, file, condition(file, ContentVersion("wrong"))).status == 412
        guard try await content(file) == "one" else {
            _ = try await put("one", file)
            return false
        }
        let folder = try await provider.uploads.place()
        guard isRefused, try await exchange(.MKCOL, folder).isSuccess else { return false }
        let isFolderRefused = try await !exchange(.DELETE, folder, condition(folder, ContentVersion("wrong"))).isSuccess
        _ = try await exchange(.DELETE, folder)
        _ = try await put("one", file)
        let version = (try await resources.resource(at: file)).version
        let isRemoved = try await exchange(.DELETE, file, condition(file, version)).isSuccess
        _ = try await put("one", file)
        return isFolderRefused && isRemoved
    }

    /// Ends with the file removed.
    private func movesWithTag(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) -> Bool {
        // Into another folder, as uploads go: servers that rename in a folder may copy then (sabre/dav).
        let other = Array(file.dropLast(2) + file.suffix(1))
        var before = try await resources.resource(at: file)
        // A server that honours no condition has removed it and was given another one.
        if traits.keepsProperties, before.keptState == nil, try await keepsProperty(file) {
            before = try await resources.resource(at: file)
        }
        let moved = try await moveByTag(file, to: other, before.version, &traits)
        defer { Task { [client, location] in _ = try? await client.exchange(.DELETE, location.url(file)) } }
        guard moved.isSuccess else { return false }
        let after = try await resources.resource(at: other)
        if traits.keepsProperties, after.keptState == nil { traits.keepsProperties = false }
        _ = try await exchange(.DELETE, other)
        return before.version == after.version
    }
}

extension ServerProbe {
    /// In its version only, where the server honours that; else in any.
    private func moveByTag(
        _ file: [FileName], to other: [FileName], _ version: ContentVersion, _ traits: inout ServerTraits
    ) async throws(ProviderError) -> HTTPReply {
        let (plain, url) = (["Destination": location.url(other), "Overwrite": "T"] as HTTPHeaders, location.url(file))
        traits.movesOnlyTagged = false
        var conditional = plain
        conditional.add(name: "If", value: WriteTurn.condition(url, has: ContentVersion("wrong")))
        let refused = try await exchange(.MOVE, file, conditional)
        // It is there by now.
        if refused.isSuccess { return refused }
        conditional.replaceOrAdd(name: "If", value: WriteTurn.condition(url, has: version))
        let moved = try await exchange(.MOVE, file, conditional)
        traits.movesOnlyTagged = refused.status == 412 && moved.isSuccess
        return moved.isSuccess ? moved : try await exchange(.MOVE, file, plain)
    }
}
