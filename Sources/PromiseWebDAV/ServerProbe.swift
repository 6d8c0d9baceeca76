import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseProvider

/// Finds out what a server really does, by doing it once in a folder of its own below `.promisefs`. About 20 requests.
struct ServerProbe: Sendable {
    let provider: WebDAVProvider
    private var client: WebDAVClient { provider.client }
    private var location: WebDAVLocation { provider.location }

    init(provider: WebDAVProvider) { self.provider = provider }

    /// Traits of a server where nothing may be written are a guess. Throws when the server cannot be reached.
    func run() async throws(ProviderError) -> ServerTraits {
        var traits = ServerTraits()
        let file: [FileName]
        do throws(ProviderError) {
            file = try await provider.uploadPlace()
            guard try await put("one", file).isSuccess else { return traits }
        } catch {
            if error.code == .refused || error.code == .notFound || error.code == .outOfSpace { return traits }
            throw error
        }
        traits.isGuess = false
        traits.hasRanges = try await sendsRanges(file)
        traits.putIsWhole = try await keepsOldContent(file)
        traits.tagsTellContent = try await tellsContent(file)
        traits.keepsProperties = try await keepsProperty(file)
        traits.hasQuota = (try? await provider.quota()) != nil
        try await tryLocks(file, &traits)
        if !traits.locks { try await tryConditions(file, &traits) }
        traits.moveKeepsTag = try await movesWithTag(file, &traits)
        return traits
    }

    private func put(_ text: String, _ path: [FileName], _ headers: HTTPHeaders = [:]) async throws(ProviderError) -> HTTPReply {
        try await client.exchange(.PUT, location.url(path), headers, body: RequestBody(text))
    }

    private func content(_ path: [FileName]) async throws(ProviderError) -> String {
        String(decoding: try await client.exchange(.GET, location.url(path)).body, as: UTF8.self)
    }

    private func sendsRanges(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let reply = try await client.exchange(.GET, location.url(file), ["Range": "bytes=1-1"])
        return reply.status == 206 && reply.body == Data("n".utf8)
    }

    /// Breaks off a PUT in the middle and looks at what is there a moment later.
    private func keepsOldContent(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let body = HTTPClientRequest.Body.stream(BrokenBody(), length: .known(Int64(1 << 16)))
        await client.breakOff(.PUT, location.url(file), body)
        // Servers notice in their own time; the longest seen was a few milliseconds.
        try? await Task.sleep(for: .milliseconds(200))
        let isWhole = try await content(file) == "one"
        if !isWhole { _ = try await put("one", file) }
        return isWhole
    }

    /// Another content and back: the tag of a clock would not come back. Ends with the content of before.
    private func tellsContent(_ file: [FileName]) async throws(ProviderError) -> Bool {
        var tags: [ContentVersion] = []
        for text in ["one", "two", "one"] {
            _ = try await put(text, file)
            tags.append(WebDAVProvider.version(of: try await provider.resource(at: file)))
        }
        return tags[0] == tags[2] && tags[0] != tags[1]
    }

    private func keepsProperty(_ file: [FileName]) async throws(ProviderError) -> Bool {
        let metadata = Metadata(mode: 0o640, owner: 1, group: 2, modificationTime: Timestamp(seconds: 1, nanoseconds: 0))
        let state = KeptState(metadata: metadata, version: "1")
        do throws(ProviderError) {
            try await provider.store(state, at: file, token: nil)
            return try await provider.resource(at: file).keptState == state.text
        } catch {
            if error.code == .offline || error.code == .cancelled { throw error }
            return false
        }
    }

    private func tryLocks(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) {
        guard let lock = try? await provider.lock(file, seconds: 60) else { return }
        let isGuarded = try await put("two", file).status == 423
        let opens = try await put("one", file, ["If": WriteTurn.condition(location.url(file), lock.token)]).isSuccess
        traits.locks = isGuarded && opens
        await provider.unlock(file, lock.token)
        guard traits.locks else { return }
        // A name that is free.
        let other = try await provider.uploadPlace()
        guard let free = try? await provider.lock(other, seconds: 60) else {
            traits.locks = false
            return
        }
        traits.lockMakesFile = (try? await provider.resource(at: other)) != nil
        let headers: HTTPHeaders = [
            "Destination": location.url(other), "Overwrite": "T", "If": WriteTurn.condition(location.url(other), free.token),
        ]
        let source = try await provider.uploadPlace()
        _ = try await put("one", source)
        traits.moveNeedsSourceLock = try await !client.exchange(.MOVE, location.url(source), headers).isSuccess
        await provider.unlock(other, free.token)
        for path in [source, other] { _ = try await client.exchange(.DELETE, location.url(path)) }
    }

    private func tryConditions(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) {
        let refusesTaken = try await put("one", file, ["If-None-Match": "*"]).status == 412
        let refusesWrong = try await put("one", file, ["If-Match": "\"wrong\""]).status == 412
        let tag = WebDAVProvider.version(of: try await provider.resource(at: file)).rawValue
        let takesRight = try await put("one", file, ["If-Match": "\"\(tag)\""]).isSuccess
        traits.honoursConditionsOnPut = refusesTaken && refusesWrong && takesRight
        let deletion = try await client.exchange(.DELETE, location.url(file), ["If-Match": "\"wrong\""])
        traits.honoursConditionsOnDelete = deletion.status == 412
        _ = try await put("one", file)
    }

    /// Ends with the file removed.
    private func movesWithTag(_ file: [FileName], _ traits: inout ServerTraits) async throws(ProviderError) -> Bool {
        let other = try await provider.uploadPlace()
        let before = try await provider.resource(at: file)
        let headers: HTTPHeaders = ["Destination": location.url(other), "Overwrite": "T"]
        let moved = try await client.exchange(.MOVE, location.url(file), headers)
        defer { Task { [client, location] in _ = try? await client.exchange(.DELETE, location.url(file)) } }
        guard moved.isSuccess else { return false }
        let after = try await provider.resource(at: other)
        if traits.keepsProperties, after.keptState == nil { traits.keepsProperties = false }
        _ = try await client.exchange(.DELETE, location.url(other))
        return WebDAVProvider.version(of: before) == WebDAVProvider.version(of: after)
    }
}

/// Half of what was announced, then an error.
private struct BrokenBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    struct Iterator: AsyncIteratorProtocol {
        var isSent = false

        mutating func next() async throws -> ByteBuffer? {
            if isSent {
                // What was sent is on its way before the connection is cut.
                try await Task.sleep(for: .milliseconds(50))
                throw CancellationError()
            }
            isSent = true
            return ByteBuffer(repeating: UInt8(ascii: "x"), count: 1 << 15)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator() }
}
