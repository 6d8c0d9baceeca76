import Logging
import NIOCore
import PromiseCore
import PromiseHTTP
import PromiseProvider
import Synchronization

/// A folder's listing as far as it was read.
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
        in folder: ItemReference, by items: WebDAVItems
    ) async throws(ProviderError) -> [Item] {
        guard !unknown.isEmpty else { return [] }
        let resources = items.resources
        let some = Array(unknown.prefix(FolderListing.asksMax))
        let items = try await concurrently(some, width: 8) {
            (row) async throws(ProviderError) -> Item? in
            let path = folder.path + [row.name]
            let found = try await resources.client.completed(
                row.resource, resources.location.url(path))
            return try? items.item(found, path: path, parent: folder.identifier)
        }
        if items.count < unknownCount {
            resources.logger.warning(
                "files are not shown: the server says no size or no version of them that can be",
                metadata: [
                    "count": "\(unknownCount - items.count)",
                    "folder": "\(resources.shown(folder.path))",
                ])
        }
        return items
    }
}

/// Makes items of a folder's listing. Its calls block and come one after the other.
final class ListingReader: Sendable {
    private struct State {
        let parser: MultiStatusParser
        let stream: XMLStream
        var listing = FolderListing()
        var bounds = ListingBounds()
    }

    /// Most folders are smaller: their listing comes as a whole.
    private static let partCountMin = 1_000

    private let folder: ItemReference
    private let items: WebDAVItems
    private var resources: WebDAVResources { items.resources }
    private let location: WebDAVLocation
    private let plain: PlainListing?
    private var hasState: Bool { plain == nil }
    private let isAcquainted: Bool
    /// Of the identifiers.
    private let prefix: String
    private let state: Mutex<State>

    init?(_ folder: ItemReference, items: WebDAVItems, _ plain: PlainListing?) {
        self.folder = folder
        self.items = items
        location = items.resources.location
        self.plain = plain
        isAcquainted = items.resources.isAcquainted
        prefix = folder.path.isEmpty ? "/" : items.identifier(folder.path).rawValue + "/"
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
        if hasState {
            return resources.listed.note(keeps: folder.keeps, folder.folderStamp, in: path)
        }
        resources.listed.noteOther(folder.folderStamp, in: path)
    }

    /// Why the listing is not to be had.
    func failure(_ what: String) -> ProviderError {
        if let excess = state.withLock({ $0.bounds.excess }) {
            return ProviderError(.permanent, "\(what): \(excess)")
        }
        return ProviderError(.retry, "\(what): the server's answer is not whole")
    }

    /// Nil when the document is cut off or no multi-status.
    func finish(_ pieces: [ByteBuffer]) -> FolderListing? {
        guard read(pieces) else { return nil }
        return state.withLock { state in
            guard state.stream.read(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true),
                state.parser.isWhole
            else {
                return nil
            }
            return state.listing
        }
    }

    private func take(_ resource: ResourceStatus, _ state: inout State) {
        switch location.names(ofReference: resource.reference) {
        case .names(folder.path):
            if state.listing.own == nil { state.listing.own = resource }
            if hasState {
                resources.listed.note(keeps: resource.keeps, resource.folderStamp, in: folder.path)
            }
        case .names(let path):
            guard path.count == folder.path.count + 1, path.starts(with: folder.path),
                !resource.isNothing
            else { return }
            let name = path[path.count - 1]
            if path.count == 1 && name == ReservedName.folder { return }
            if !isAcquainted, StoredName.hasMark(name.bytes) { state.listing.mayBeEscaped = true }
            // Of a name that is listed twice the first row is believed, as with any other provider:
            // of what comes in pages the first one has been handed on already.
            guard state.bounds.takes(name) else { return }
            let number = resource.number.map { ItemIdentifier(number: $0) }
            let identifier = number ?? ItemIdentifier(prefix + PercentEncoding.encoded(name.bytes))
            let made = try? items.item(
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
        case .unspeakable(let name): resources.warn(unspeakable: name)
        }
    }
}
