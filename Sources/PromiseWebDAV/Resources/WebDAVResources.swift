import AsyncHTTPClient
import Foundation
import Logging
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// The names this provider keeps things under; they are no items.
enum ReservedName {
    /// In the root only.
    static let folder = FileName(trusted: Array(".promisefs".utf8))
    static let uploads = FileName(trusted: Array("uploads".utf8))
}

/// The resources of a collection on a server, by their paths, and what is known of the server. What
/// asks, and changes nothing: PROPFIND (RFC 4918, section 9.1) and HEAD.
///
/// Everything else of this module writes and reads through it, and keeps its own state. `state` is
/// a leaf.
final class WebDAVResources: Sendable {
    private struct State {
        /// Nil until it is known what the server does; see `FirstMeeting`.
        var traits: ServerTraits?
        /// What is taken for true until then: what only reads need.
        var provisional = ServerTraits.provisional
        /// It answers HEAD without saying how much there is.
        var hasHeadsWithoutSize = false
        /// Temporary places of uploads under way, and whose they are, for messages.
        var asides: [[FileName]: [FileName]] = [:]
    }

    let client: WebDAVClient
    let logger: Logger
    let clock: any TimeSource
    let pool: BlockingPool
    /// One writer of this process at a time for each place.
    let turns = PathTurns()
    let listed = ListedFolders()
    private let address: WebDAVLocation
    private let state: Mutex<State>

    /// `known`: what was found out about the server before.
    init(
        client: WebDAVClient, location: WebDAVLocation, known: ServerTraits?, logger: Logger,
        clock: any TimeSource
    ) {
        self.client = client
        self.logger = logger
        self.clock = clock
        address = location
        state = Mutex(State(traits: known))
        pool = BlockingPool(name: "webdav", threads: 4)
    }

    deinit { pool.stop() }

    // MARK: The server

    /// With names as the server takes them.
    var location: WebDAVLocation { address.escaping(traits.escapes ?? []) }

    var traits: ServerTraits { state.withLock { $0.traits ?? $0.provisional } }

    /// Nil until it is known what the server does with what is written.
    var knownTraits: ServerTraits? { state.withLock { $0.traits } }

    var isAcquainted: Bool { knownTraits != nil }

    func take(_ traits: ServerTraits) { state.withLock { $0.traits = traits } }

    /// In the first listing already, by which items are called.
    func tellsNumbers() { state.withLock { $0.provisional.tellsNumbers = true } }

    /// It does not do what it did when it was tried: another server may have taken its place.
    func takesNoParts() { state.withLock { $0.traits?.partWriting = .nothing } }

    // MARK: Properties

    private var properties: String { WebDAVResources.propertyRequest(numberProperty) }

    /// Asked for where the server has it.
    var numberProperty: String { traits.tellsNumbers == true ? WebDAVResources.numberProperty : "" }

    static let numberProperty = "<fileid xmlns=\"http://owncloud.org/ns\"/>"

    static let quotaProperties = "<quota-available-bytes/><quota-used-bytes/>"

    /// `more`: further elements of properties.
    static func propertyRequest(_ more: String = "", hasState: Bool = true) -> String {
        let space = MultiStatusParser.ownSpace
        let state = hasState ? "<state xmlns=\"\(space)\"/><keeps xmlns=\"\(space)\"/>" : ""
        return """
            <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getetag/><getlastmodified/>\
            \(more)\(state)</prop></propfind>
            """
    }

    // MARK: One resource

    /// `body`: asks for more than what an item has.
    func resource(
        at path: [FileName], isFolder: Bool = false, body: String? = nil
    ) async throws(ProviderError) -> ResourceStatus {
        let found = try await propfind(
            path, isFolder: isFolder, depth: "0", body: body ?? properties)
        let own = try own(path, in: found)
        if own.isCollection { listed.note(keeps: own.keeps, own.folderStamp, in: path) }
        return own
    }

    /// Of what was just put or moved there, without what is kept with it: HEAD costs a server a
    /// third of what PROPFIND does.
    func file(at path: [FileName]) async throws(ProviderError) -> ResourceStatus {
        guard traits.listsTags, !state.withLock({ $0.hasHeadsWithoutSize }) else {
            return try await resource(at: path)
        }
        let reply = try await client.exchange(.HEAD, location.url(path))
        var result = ResourceStatus()
        result.entityTag = reply.header("ETag")
        result.lastModified = reply.header("Last-Modified")
        result.contentLength = reply.header("Content-Length").flatMap { ItemSize.read($0) }
        if reply.status == 200, result.contentLength == nil {
            state.withLock { $0.hasHeadsWithoutSize = true }
        }
        let isTold = reply.status == 200 && result.entityTag != nil && result.contentLength != nil
        return isTold ? result : try await resource(at: path)
    }

    /// Nil when the server says that there is nothing.
    func resourceIfAny(at path: [FileName]) async throws(ProviderError) -> ResourceStatus? {
        do throws(ProviderError) {
            return try await resource(at: path)
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    /// What a reply says of the place it was asked about. Only a server that says so has nothing
    /// there: `.notFound` is believed as a deletion.
    func own(
        _ path: [FileName], in found: [(path: [FileName], resource: ResourceStatus)]
    ) throws(ProviderError) -> ResourceStatus {
        let what = "\(shown(path)) cannot be looked at"
        guard
            let own = found.first(where: { $0.path == path })?.resource
                ?? location.gone(path, in: found)
        else {
            throw ProviderError(.retry, "\(what): \(TwinNames.otherAnswer)")
        }
        guard own.isNothing else { return own }
        if let trouble = own.trouble {
            let error = ProviderError(status: trouble, what)
            throw error.code == .notFound ? ProviderError(.retry, error.message) : error
        }
        throw ProviderError(.notFound, "\(shown(path)) is not on the server")
    }

    /// Returns what is there, where it has looked.
    @discardableResult
    func check(
        _ expectation: Expectation, at path: [FileName]
    ) async throws(ProviderError) -> ResourceStatus? {
        if expectation == .anything { return nil }
        let found = try await resourceIfAny(at: path)
        switch (expectation, found) {
        case (.nothing, nil), (.anything, _): break
        case (.nothing, .some): throw changed(path)
        case (.version, nil): throw ProviderError(.notFound, "\(shown(path)) is not on the server")
        case (.version(let version), .some(let now)):
            guard now.version == version else {
                throw changed(path)
            }
        }
        return found
    }

    // MARK: Many

    /// Whether the server names anything in a folder, also what is no item here: names that cannot
    /// be shown, and what the server tells nothing of. Throws unless the folder itself is named.
    func holdsNothing(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let rows = try await statuses(path, isFolder: true, depth: "1", body: properties)
        let own = rows.filter { location.names(ofReference: $0.reference) == .names(path) }
        guard own.contains(where: \.isCollection) else {
            throw ProviderError(
                .retry,
                "\(shown(path)) cannot be looked at: the server does not say that it is a folder")
        }
        return rows.count == own.count
    }

    /// What a PROPFIND tells, with the names that its references stand for.
    func propfind(
        _ path: [FileName], isFolder: Bool = false, depth: String, body: String
    ) async throws(ProviderError) -> [(path: [FileName], resource: ResourceStatus)] {
        let resources = try await statuses(path, isFolder: isFolder, depth: depth, body: body)
        let location = location
        let byteCount = resources.reduce(0) { $0 + $1.reference.utf8.count }
        let all = await pool.run(over: byteCount) {
            resources.map { location.names(ofReference: $0.reference) }
        }
        var result: [(path: [FileName], resource: ResourceStatus)] = []
        result.reserveCapacity(resources.count)
        for (resource, names) in zip(resources, all) {
            switch names {
            case .names(let names): result.append((names, resource))
            case .elsewhere: continue
            case .unspeakable(let name): warn(unspeakable: name)
            }
        }
        return result
    }

    func warn(unspeakable name: String) {
        logger.warning(
            "a name on the server cannot be shown: it is no UTF-8, or no file name",
            metadata: ["name": "\(name)"])
    }

    private func statuses(
        _ path: [FileName], isFolder: Bool, depth: String, body: String
    ) async throws(ProviderError) -> [ResourceStatus] {
        let headers: HTTPHeaders = [
            "Depth": depth, "Content-Type": "application/xml; charset=utf-8",
        ]
        let reply = try await client.exchange(
            .PROPFIND, location.url(path, isFolder: isFolder), headers, body: RequestBody(body),
            timeout: .seconds(300))
        let what = "\(shown(path)) cannot be looked at"
        guard reply.status == 207 else { throw ProviderError(reply, what) }
        // A reply cut off in the middle would look like a folder with fewer items.
        guard let resources = await parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        return resources
    }

    /// Nil when it is cut off or no multi-status. What is short costs less than to have another
    /// thread read it.
    func parsed(_ document: Data) async -> [ResourceStatus]? {
        if document.count <= WebDAVResources.shortByteCount {
            return MultiStatusParser.parse(document)
        }
        return await pool.run { MultiStatusParser.parse(document) }
    }

    private static let shortByteCount = 4096

    // MARK: For people

    /// What is on its way aside is at its place.
    func note(_ aside: [FileName], for path: [FileName]?) {
        state.withLock { $0.asides[aside] = path }
    }

    /// A path for people, to whom what is on its way aside is at its place.
    func shown(_ path: [FileName]) -> String {
        let isAside = path.first == ReservedName.folder
        let names = isAside ? state.withLock { $0.asides[path] } ?? path : path
        return "'/" + names.map(\.display).joined(separator: "/") + "'"
    }

    func changed(_ path: [FileName]) -> ProviderError {
        ProviderError(.conflict, "\(shown(path)) was changed or made on the server meanwhile")
    }
}

extension WebDAVLocation {
    /// Xandikos escapes commas twice where it says that a name is not there: then it must say
    /// nothing else. What else it escapes twice is not believed: it says so of names that are
    /// there, when they end with spaces.
    fileprivate func gone(
        _ path: [FileName], in found: [(path: [FileName], resource: ResourceStatus)]
    ) -> ResourceStatus? {
        guard found.count == 1, let only = found.first, only.resource.status == 404,
            hasCommasEscapedTwice(only.path, of: path)
        else { return nil }
        return only.resource
    }
}
