import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Sends the content of a file, in the version that is asked for, or throws `.stale`.
final class ContentFetcher: Sendable {
    private let resources: WebDAVResources
    private let unsteadyTags = UnsteadyTags()
    /// The server sends content without saying which version it is.
    private let hasRepliesWithoutVersion = Atomic(false)

    init(_ resources: WebDAVResources) { self.resources = resources }

    private var client: WebDAVClient { resources.client }
    private var location: WebDAVLocation { resources.location }

    func fetch(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        let what = "\(resources.shown(reference.path)) cannot be fetched"
        if let range, range.isEmpty { return }
        let mustLook = hasRepliesWithoutVersion.load(ordering: .relaxed)
        if mustLook { _ = try await checked(version, of: reference.path) }
        var headers = HTTPHeaders()
        if let range {
            headers.add(name: "Range", value: "bytes=\(range.lower)-\(range.upper - 1)")
        }
        let response = try await client.open(.GET, location.url(reference.path), headers)
        let status = Int(response.status.code)
        guard status == 200 || status == 206 else {
            let error = ProviderError(
                status: status, retryAfter: response.headers.first(name: "Retry-After"), what)
            // 409 says nothing of reading: the server is in the middle of something.
            throw status == 409 ? ProviderError(.retry, error.message) : error
        }
        // Every reply names what it sends; a condition would be refused by servers whose tags are
        // weak at first.
        let described = ResourceStatus(response)
        let saysNothing = described.entityTag == nil && described.lastModified == nil
        if saysNothing, !mustLook {
            hasRepliesWithoutVersion.store(true, ordering: .relaxed)
            return try await fetch(of: reference, version: version, range: range, into: sink)
        }
        // What a listing tells no tag of has the time as its version, and the reply may have a tag
        // all the same.
        let isRight = [described.version, described.versionByTime].contains(version)
        let reply = UnsteadyTags.Reply(
            response, described, of: reference.path, expecting: sink.size)
        guard
            unsteadyTags.takes(
                reply, as: version, isRight: isRight || saysNothing, at: resources.clock.uptime())
        else {
            throw stale(reference.path)
        }
        var size = described.contentLength ?? sink.size
        // A reply that broke off looks like a whole one where nobody says how long it is
        // (Nextcloud, behind Apache).
        if size == nil, range == nil {
            size = try await checked(version, of: reference.path).contentLength
        }
        let content = ReplyContent(response: response, range: range, size: size, what: what)
        let digest =
            status == 200
            ? ContentDigest(ownCloud: response.headers.first(name: "OC-Checksum")) : nil
        try await content.write(
            into: sink, verifiedBy: range == nil ? digest : nil, pool: resources.pool,
            server: location.origin,
            isCertain: !saysNothing && !client.isRelayed)
        // What is behind a relay may have changed since its server looked.
        if saysNothing || client.isRelayed { _ = try await checked(version, of: reference.path) }
    }

    /// Before and after a reply that does not say what it sends (lighttpd's, of a file whose type
    /// it does not know).
    private func checked(_ version: ContentVersion, of path: [FileName]) async throws(ProviderError)
        -> ResourceStatus
    {
        let now = try await resources.resource(at: path)
        guard now.version == version else { throw stale(path) }
        return now
    }

    private func stale(_ path: [FileName]) -> ProviderError {
        ProviderError(.stale, "\(resources.shown(path)) has another version on the server")
    }
}
