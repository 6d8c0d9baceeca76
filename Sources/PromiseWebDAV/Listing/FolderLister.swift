import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Lists a folder: PROPFIND with `Depth: 1`. The answer is read as it comes, on a thread that may
/// take its time, while the server makes the rest.
struct FolderLister: Sendable {
    private static let batchByteCount = 128 << 10

    let items: WebDAVItems
    let acquaintance: Acquaintance
    private var resources: WebDAVResources { items.resources }
    private var client: WebDAVClient { resources.client }

    func list(
        _ folder: ItemReference, handOn: (@Sendable ([Item]) async -> Void)?
    ) async throws(ProviderError) -> [Item] {
        var (plain, listing): (PlainListing?, FolderListing)
        do throws(ProviderError) {
            plain = try await PlainListing.of(folder, by: resources)
            listing = try await read(folder, plain, handOn: handOn)
            if listing.mayBeEscaped, !resources.isAcquainted {
                // What a name stands for is known when it is known what the server cannot keep.
                try await acquaintance.complete()
                listing = try await read(folder, plain, handOn: handOn)
            }
            if let before = plain, !before.isStill(listing.own),
                try await resources.resource(at: folder.path, isFolder: true).keeps
            {
                // Another machine kept something there since it was told that nobody does.
                plain = nil
                listing = try await read(folder, plain, handOn: handOn)
            }
        } catch {
            if error.code == .notFound {
                resources.listed.forget(folder.identifier, at: folder.path)
            }
            throw error
        }
        let own = try resources.own(folder.path, in: listing.own.map { [(folder.path, $0)] } ?? [])
        guard own.isCollection else {
            throw ProviderError(
                .notFound, "\(resources.shown(folder.path)) is no folder on the server")
        }
        // What was not asked for is news.
        let token = plain == nil ? own.syncToken : nil
        resources.listed.listed(folder, token.map { SyncToken(folder: folder.path, text: $0) })
        return listing.items + (try await listing.asked(in: folder, by: items))
    }

    private func read(
        _ folder: ItemReference, _ plain: PlainListing?, handOn: (@Sendable ([Item]) async -> Void)?
    ) async throws(ProviderError) -> FolderListing {
        let what = "\(resources.shown(folder.path)) cannot be looked at"
        let body = WebDAVResources.propertyRequest(
            (resources.traits.tellsNews ? "<sync-token/>" : "") + resources.numberProperty,
            hasState: plain == nil)
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        let response = try await client.open(
            .PROPFIND, resources.location.url(folder.path, isFolder: true), headers,
            body: RequestBody(body), timeout: .seconds(300))
        guard response.status.code == 207 else {
            throw ProviderError(try await client.whole(response, .PROPFIND), what)
        }
        guard let reader = ListingReader(folder, items: items, plain) else {
            throw ProviderError(.retry, "\(what): there is no memory for it")
        }
        var (pieces, byteCount, isRead) = ([ByteBuffer](), 0, true)
        try await client.read(response, .PROPFIND) { (piece) async throws(ProviderError) in
            pieces.append(piece)
            byteCount += piece.readableBytes
            guard byteCount >= FolderLister.batchByteCount else { return true }
            let batch = pieces
            (pieces, byteCount) = ([], 0)
            isRead = await resources.pool.run { reader.read(batch) }
            if let handOn, let part = reader.takePart() { await handOn(part) }
            return isRead
        }
        let last = pieces
        // A reply cut off in the middle would look like a folder with fewer items.
        guard isRead, let listing = await resources.pool.run({ reader.finish(last) }) else {
            throw reader.failure(what)
        }
        return listing
    }
}
