import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// Listing a folder. The answer is read as it comes, on a thread that may take its time, while the server makes the rest.

extension WebDAVProvider {
    private static let batchByteCount = 128 << 10

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        ItemPage(items: try await enumerate(folder, handOn: nil))
    }

    package func enumerateAllItems(
        in folder: ItemReference, handOn: @escaping @Sendable ([Item]) async -> Void
    ) async throws(ProviderError) -> [Item] {
        try await enumerate(folder, handOn: handOn)
    }

    private func enumerate(
        _ folder: ItemReference, handOn: (@Sendable ([Item]) async -> Void)?
    ) async throws(ProviderError) -> [Item] {
        var (plain, listing): (PlainListing?, FolderListing)
        do throws(ProviderError) {
            plain = try await PlainListing.of(folder, by: self)
            listing = try await list(folder, plain, handOn: handOn)
            if listing.mayBeEscaped, !isAcquainted {
                // What a name stands for is known when it is known what the server cannot keep.
                try await acquaintance.complete()
                listing = try await list(folder, plain, handOn: handOn)
            }
            if let before = plain, !before.isStill(listing.own), try await resource(at: folder.path, isFolder: true).keeps {
                // Another machine kept something there since it was told that nobody does.
                plain = nil
                listing = try await list(folder, plain, handOn: handOn)
            }
        } catch {
            if error.code == .notFound { forget(folder.identifier, at: folder.path) }
            throw error
        }
        let own = try own(folder.path, in: listing.own.map { [(folder.path, $0)] } ?? [])
        guard own.isCollection else {
            throw ProviderError(.notFound, "\(shown(folder.path)) is no folder on the server")
        }
        shared.withLock { shared in
            shared.folders.insert(folder.identifier)
            shared.keeping.isListed(folder.path)
            if folder.identifier.isNumber { shared.numbers[folder.path] = folder.identifier }
            // What was not asked for is news.
            let token = plain == nil ? own.syncToken : nil
            shared.syncTokens[folder.identifier] = token.map { SyncToken(folder: folder.path, text: $0) }
        }
        return listing.items + (try await listing.asked(in: folder, by: self))
    }

    private func list(
        _ folder: ItemReference, _ plain: PlainListing?, handOn: (@Sendable ([Item]) async -> Void)?
    ) async throws(ProviderError) -> FolderListing {
        let what = "\(shown(folder.path)) cannot be looked at"
        let body = WebDAVProvider.propertyRequest(
            (traits.tellsNews ? "<sync-token/>" : "") + numberProperty, hasState: plain == nil)
        let headers: HTTPHeaders = ["Depth": "1", "Content-Type": "application/xml; charset=utf-8"]
        let response = try await client.open(
            .PROPFIND, location.url(folder.path, isFolder: true), headers, body: RequestBody(body), timeout: .seconds(300))
        guard response.status.code == 207 else { throw ProviderError(try await client.whole(response, .PROPFIND), what) }
        guard let reader = ListingReader(folder, provider: self, plain) else {
            throw ProviderError(.retry, "\(what): there is no memory for it")
        }
        var (pieces, byteCount, isRead) = ([ByteBuffer](), 0, true)
        try await client.read(response, .PROPFIND) { (piece) async throws(ProviderError) in
            pieces.append(piece)
            byteCount += piece.readableBytes
            guard byteCount >= WebDAVProvider.batchByteCount else { return true }
            let batch = pieces
            (pieces, byteCount) = ([], 0)
            isRead = await pool.run { reader.read(batch) }
            if let handOn, let part = reader.takePart() { await handOn(part) }
            return isRead
        }
        let last = pieces
        // A reply cut off in the middle would look like a folder with fewer items.
        guard isRead, let listing = await pool.run({ reader.finish(last) }) else {
            throw reader.failure(what)
        }
        return listing
    }
}

struct FolderListing: Sendable {
    var items: [Item] = []
    /// Of the folder itself.
    var own: ResourceStatus?
    /// Files of which the server does not tell what they must have.
    var unknown: [(name: FileName, resource: ResourceStatus)] = []
    /// With those that are not kept, as nobody would ask for them.
    var unknownCount = 0
    /// A name looks like one that was written otherwise.
    var mayBeEscaped = false

    static let asksMax = 256

    /// The unknown ones, each asked for. One of which nothing is told then, either, is not shown;
    /// nobody takes it for removed, as it is asked for by itself before.
    func asked(
        in folder: ItemReference, by provider: WebDAVProvider
    ) async throws(ProviderError) -> [Item] {
        guard !unknown.isEmpty else { return [] }
        let some = Array(unknown.prefix(FolderListing.asksMax))
        let items = try await concurrently(some, width: 8) { (row) async throws(ProviderError) -> Item? in
            let path = folder.path + [row.name]
            let found = try await provider.client.completed(row.resource, provider.location.url(path))
            return try? provider.item(found, path: path, parent: folder.identifier)
        }
        if items.count < unknownCount {
            provider.logger.warning(
                "files are not shown: the server says no size or no version of them that can be",
                metadata: [
                    "count": "\(unknownCount - items.count)", "folder": "\(provider.shown(folder.path))",
                ])
        }
        return items
    }
}

/// Makes items of a folder's listing. Its calls block and come one after the other.
private final class ListingReader: Sendable {
    private struct State {
        let parser: MultiStatusParser
        let stream: XMLStream
        var listing = FolderListing()
        var bounds = ListingBounds()
    }

    /// Most folders are smaller: their listing comes as a whole.
    private static let partCountMin = 1_000

    private let folder: ItemReference
    private let provider: WebDAVProvider
    private let location: WebDAVLocation
    private let plain: PlainListing?
    private var hasState: Bool { plain == nil }
    private let isAcquainted: Bool
    /// Of the identifiers.
    private let prefix: String
    private let state: Mutex<State>

    init?(_ folder: ItemReference, provider: WebDAVProvider, _ plain: PlainListing?) {
        self.folder = folder
        self.provider = provider
        location = provider.location
        self.plain = plain
        isAcquainted = provider.isAcquainted
        prefix = folder.path.isEmpty ? "/" : provider.identifier(folder.path).rawValue + "/"
        let parser = MultiStatusParser()
        guard let stream = XMLStream(for: parser) else { return nil }
        state = Mutex(State(parser: parser, stream: stream))
    }

    /// False when this is no XML.
    func read(_ pieces: [ByteBuffer]) -> Bool {
        state.withLock { state in
            for piece in pieces {
                guard piece.withUnsafeReadableBytes({ state.stream.read($0) }) else { return false }
            }
            for resource in state.parser.takeResources() { take(resource, &state) }
            return state.bounds.excess == nil
        }
    }

    /// What has come of a folder that is one; nil while it is not worth while.
    func takePart() -> [Item]? {
        state.withLock { state in
            guard state.listing.own?.isCollection == true, !state.listing.mayBeEscaped,
                state.listing.items.count >= ListingReader.partCountMin,
                plain?.isStill(state.listing.own) != false
            else { return nil }
            let part = state.listing.items
            state.listing.items = []
            state.bounds.handedOn()
            return part
        }
    }

    private func note(_ folder: ResourceStatus, _ path: [FileName]) {
        if hasState { return provider.note(keeps: folder.keeps, folder.folderStamp, in: path) }
        provider.shared.withLock { $0.keeping.noteOther(folder.folderStamp, in: path) }
    }

    /// Why the listing is not to be had.
    func failure(_ what: String) -> ProviderError {
        if let excess = state.withLock({ $0.bounds.excess }) { return ProviderError(.permanent, "\(what): \(excess)") }
        return ProviderError(.retry, "\(what): the server's answer is not whole")
    }

    /// Nil when the document is cut off or no multi-status.
    func finish(_ pieces: [ByteBuffer]) -> FolderListing? {
        guard read(pieces) else { return nil }
        return state.withLock { state in
            guard state.stream.read(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true), state.parser.isWhole else {
                return nil
            }
            return state.listing
        }
    }

    private func take(_ resource: ResourceStatus, _ state: inout State) {
        switch location.names(ofReference: resource.reference) {
        case .names(folder.path):
            if state.listing.own == nil { state.listing.own = resource }
            if hasState { provider.note(keeps: resource.keeps, resource.folderStamp, in: folder.path) }
        case .names(let path):
            guard path.count == folder.path.count + 1, path.starts(with: folder.path), !resource.isNothing else { return }
            let name = path[path.count - 1]
            if path.count == 1 && name == ReservedName.folder { return }
            if !isAcquainted, StoredName.hasMark(name.bytes) { state.listing.mayBeEscaped = true }
            // Of a name that is listed twice the first row is believed, as with any other provider: of what comes in pages the
            // first one has been handed on already.
            guard state.bounds.takes(name) else { return }
            let number = resource.number.map { ItemIdentifier(number: $0) }
            let identifier = number ?? ItemIdentifier(prefix + PercentEncoding.encoded(name.bytes))
            let made = try? provider.item(
                resource, path: path, parent: folder.identifier, identifier: identifier)
            guard var item = made else {
                state.listing.unknownCount += 1
                if state.listing.unknownCount <= FolderListing.asksMax {
                    state.listing.unknown.append((name, resource))
                }
                return
            }
            if !hasState { item.isGuess = true }
            if resource.isCollection { note(resource, path) }
            state.listing.items.append(item)
            if state.listing.own == nil { state.bounds.holds(item) }
        case .elsewhere: return
        case .unspeakable(let name): provider.warn(unspeakable: name)
        }
    }
}
