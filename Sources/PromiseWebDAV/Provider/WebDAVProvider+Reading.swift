import AsyncHTTPClient
import FoundationEssentials
import Glibc
import Logging
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// Looking: PROPFIND for what there is, GET for content.

/// The names this provider keeps things under; they are no items.
enum ReservedName {
    /// In the root only.
    static let folder = FileName(trusted: Array(".promisefs".utf8))
    static let uploads = FileName(trusted: Array("uploads".utf8))
}

extension WebDAVProvider {
    private var properties: String { WebDAVProvider.propertyRequest(numberProperty) }

    /// Asked for where the server has it.
    var numberProperty: String { traits.tellsNumbers == true ? WebDAVProvider.numberProperty : "" }
    static let numberProperty = "<fileid xmlns=\"http://owncloud.org/ns\"/>"
    static let quotaProperties = "<quota-available-bytes/><quota-used-bytes/>"

    /// `more`: further elements of properties.
    static func propertyRequest(_ more: String = "", hasState: Bool = true) -> String {
        let space = MultiStatusParser.ownSpace
        let state = hasState ? "<state xmlns=\"\(space)\"/><keeps xmlns=\"\(space)\"/>" : ""
        return """
            <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getetag/><getlastmodified/>\(more)\(state)</prop>\
            </propfind>
            """
    }

    // MARK: Items

    func identifier(_ path: some Collection<FileName>) -> ItemIdentifier {
        if path.isEmpty { return ItemIdentifier(location.identity) }
        return ItemIdentifier("/" + path.map { PercentEncoding.encoded($0.bytes) }.joined(separator: "/"))
    }

    func identifier(_ resource: ResourceStatus, _ path: [FileName]) -> ItemIdentifier {
        guard let number = resource.number, !path.isEmpty, traits.tellsNumbers == true else { return identifier(path) }
        return ItemIdentifier(number: number)
    }

    /// `parent`: as the caller calls the folder; nil: by its place. `identifier`: what the caller knows that it is called.
    /// Throws where the server does not tell what a file must have: that is unknown, and not nothing.
    func item(
        _ resource: ResourceStatus, path: [FileName], parent: ItemIdentifier?, identifier: ItemIdentifier? = nil
    ) throws(ProviderError) -> Item {
        if let lack = resource.lack { throw ProviderError(.permanent, "\(shown(path)) cannot be shown: the server \(lack)") }
        let version = WebDAVProvider.version(of: resource)
        let state = resource.keptState.flatMap { KeptState($0) }
        // Another program's content is a file, whatever was here before.
        let isOurs = state?.version == version.rawValue
        let target = resource.isCollection || !isOurs ? nil : state?.target
        let kind: NodeKind = resource.isCollection ? .folder : target == nil ? .file : .link
        var metadata =
            state?.metadata
            ?? Metadata(
                mode: kind == .folder ? 0o755 : 0o644, owner: geteuid(), group: getegid(), modificationTime: .zero)
        var isGuess = false
        if state == nil || (!isOurs && kind != .folder) {
            let time = resource.lastModified.flatMap { HTTPDate.timestamp($0) }
            // A file without a time is as old as we know it.
            isGuess = time == nil && kind != .folder
            metadata.modificationTime = time ?? (isGuess ? clock.now() : .zero)
        }
        var item = Item(
            identifier: identifier ?? self.identifier(resource, path),
            parent: path.isEmpty ? nil : parent ?? folderIdentifier(path.dropLast()),
            name: path.last ?? FileName(trusted: Array("root".utf8)), kind: kind,
            size: kind == .folder ? 0 : target.map { UInt64($0.count) } ?? resource.contentLength ?? 0, metadata: metadata,
            version: version, target: target)
        item.isGuess = isGuess
        return item
    }

    private func folderIdentifier(_ path: ArraySlice<FileName>) -> ItemIdentifier {
        shared.withLock { $0.numbers[Array(path)] } ?? identifier(path)
    }

    static let folderVersion = ContentVersion("folder")

    static func version(of resource: ResourceStatus) -> ContentVersion { resource.version }

    /// `body`: asks for more than what an item has.
    func resource(
        at path: [FileName], isFolder: Bool = false, body: String? = nil
    ) async throws(ProviderError) -> ResourceStatus {
        let found = try await propfind(path, isFolder: isFolder, depth: "0", body: body ?? properties)
        let own = try own(path, in: found)
        if own.isCollection { note(keeps: own.keeps, own.folderStamp, in: path) }
        return own
    }

    /// Of what was just put or moved there, without what is kept with it: HEAD costs a server a third of what PROPFIND does.
    func file(at path: [FileName]) async throws(ProviderError) -> ResourceStatus {
        guard traits.listsTags, !shared.withLock({ $0.hasHeadsWithoutSize }) else { return try await resource(at: path) }
        let reply = try await client.exchange(.HEAD, location.url(path))
        var result = ResourceStatus()
        result.entityTag = reply.header("ETag")
        result.lastModified = reply.header("Last-Modified")
        result.contentLength = reply.header("Content-Length").flatMap { ItemSize.read($0) }
        if reply.status == 200, result.contentLength == nil { shared.withLock { $0.hasHeadsWithoutSize = true } }
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

    /// What a reply says of the place it was asked about. Only a server that says so has nothing there: `.notFound` is
    /// believed as a deletion.
    func own(
        _ path: [FileName], in found: [(path: [FileName], resource: ResourceStatus)]
    ) throws(ProviderError) -> ResourceStatus {
        let what = "\(shown(path)) cannot be looked at"
        guard let own = found.first(where: { $0.path == path })?.resource ?? location.gone(path, in: found) else {
            throw ProviderError(.retry, "\(what): \(TwinNames.otherAnswer)")
        }
        guard own.isNothing else { return own }
        if let trouble = own.trouble {
            let error = ProviderError(status: trouble, what)
            throw error.code == .notFound ? ProviderError(.retry, error.message) : error
        }
        throw ProviderError(.notFound, "\(shown(path)) is not on the server")
    }

    // MARK: Folders

    func forget(_ folder: ItemIdentifier, at path: [FileName]) {
        shared.withLock { shared in
            shared.numbers[path] = nil
            shared.keeping.forget(path)
            shared.folders.remove(folder)
            shared.syncTokens[folder] = nil
        }
    }

    /// Whether the server names anything in a folder, also what is no item here: names that cannot be shown, and what the
    /// server tells nothing of. Throws unless the folder itself is named.
    func holdsNothing(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let rows = try await statuses(path, isFolder: true, depth: "1", body: properties)
        let own = rows.filter { location.names(ofReference: $0.reference) == .names(path) }
        guard own.contains(where: \.isCollection) else {
            throw ProviderError(.retry, "\(shown(path)) cannot be looked at: the server does not say that it is a folder")
        }
        return rows.count == own.count
    }

    /// What a PROPFIND tells, with the names that its references stand for.
    func propfind(
        _ path: [FileName], isFolder: Bool = false, depth: String, body: String
    ) async throws(ProviderError) -> [(path: [FileName], resource: ResourceStatus)] {
        let resources = try await statuses(path, isFolder: isFolder, depth: depth, body: body)
        var result: [(path: [FileName], resource: ResourceStatus)] = []
        result.reserveCapacity(resources.count)
        for resource in resources {
            switch location.names(ofReference: resource.reference) {
            case .names(let names): result.append((names, resource))
            case .elsewhere: continue
            case .unspeakable(let name): warn(unspeakable: name)
            }
        }
        return result
    }

    func warn(unspeakable name: String) {
        logger.warning("a name on the server cannot be shown: it is no UTF-8, or no file name", metadata: ["name": "\(name)"])
    }

    private func statuses(
        _ path: [FileName], isFolder: Bool, depth: String, body: String
    ) async throws(ProviderError) -> [ResourceStatus] {
        let headers: HTTPHeaders = ["Depth": depth, "Content-Type": "application/xml; charset=utf-8"]
        let reply = try await client.exchange(
            .PROPFIND, location.url(path, isFolder: isFolder), headers, body: RequestBody(body), timeout: .seconds(300))
        let what = "\(shown(path)) cannot be looked at"
        guard reply.status == 207 else { throw ProviderError(reply, what) }
        // A reply cut off in the middle would look like a folder with fewer items.
        guard let resources = await parsed(reply.body) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        return resources
    }

    /// Nil when it is cut off or no multi-status. What is short costs less than to have another thread read it.
    func parsed(_ document: Data) async -> [ResourceStatus]? {
        if document.count <= WebDAVProvider.shortByteCount { return MultiStatusParser.parse(document) }
        return await pool.run { MultiStatusParser.parse(document) }
    }

    private static let shortByteCount = 4096

    // MARK: Content

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let what = "\(shown(reference.path)) cannot be fetched"
        if let range, range.isEmpty { return }
        let mustLook = shared.withLock { $0.hasRepliesWithoutVersion }
        if mustLook { _ = try await checked(version, of: reference.path) }
        var headers = HTTPHeaders()
        if let range { headers.add(name: "Range", value: "bytes=\(range.lower)-\(range.upper - 1)") }
        let response = try await client.open(.GET, location.url(reference.path), headers)
        let status = Int(response.status.code)
        guard status == 200 || status == 206 else {
            let error = ProviderError(status: status, retryAfter: response.headers.first(name: "Retry-After"), what)
            // 409 says nothing of reading: the server is in the middle of something.
            throw status == 409 ? ProviderError(.retry, error.message) : error
        }
        // Every reply names what it sends; a condition would be refused by servers whose tags are weak at first.
        let described = ResourceStatus(response)
        let saysNothing = described.entityTag == nil && described.lastModified == nil
        if saysNothing, !mustLook {
            shared.withLock { $0.hasRepliesWithoutVersion = true }
            return try await fetchContents(of: reference, version: version, range: range, into: sink)
        }
        // What a listing tells no tag of has the time as its version, and the reply may have a tag all the same.
        let isRight = [described.version, described.versionByTime].contains(version)
        let reply = UnsteadyTags.Reply(response, described, of: reference.path, expecting: sink.size)
        guard unsteadyTags.takes(reply, as: version, isRight: isRight || saysNothing, at: clock.uptime()) else {
            throw stale(reference.path)
        }
        var size = described.contentLength ?? sink.size
        // A reply that broke off looks like a whole one where nobody says how long it is (Nextcloud, behind Apache).
        if size == nil, range == nil { size = try await checked(version, of: reference.path).contentLength }
        let content = ReplyContent(response: response, range: range, size: size, what: what)
        let digest = status == 200 ? ContentDigest(ownCloud: response.headers.first(name: "OC-Checksum")) : nil
        try await content.write(
            into: sink, verifiedBy: range == nil ? digest : nil, pool: pool, server: location.origin,
            isCertain: !saysNothing && !client.isRelayed)
        // What is behind a relay may have changed since its server looked.
        if saysNothing || client.isRelayed { _ = try await checked(version, of: reference.path) }
    }

    /// Before and after a reply that does not say what it sends (lighttpd's, of a file whose type it does not know).
    private func checked(_ version: ContentVersion, of path: [FileName]) async throws(ProviderError) -> ResourceStatus {
        let now = try await resource(at: path)
        guard WebDAVProvider.version(of: now) == version else { throw stale(path) }
        return now
    }

    private func stale(_ path: [FileName]) -> ProviderError {
        ProviderError(.stale, "\(shown(path)) has another version on the server")
    }

    /// A path for people, to whom what is on its way aside is at its place.
    func shown(_ path: [FileName]) -> String {
        let isAside = path.first == ReservedName.folder
        let names = isAside ? shared.withLock { $0.asides[path] } ?? path : path
        return "'/" + names.map(\.display).joined(separator: "/") + "'"
    }
}

extension WebDAVLocation {
    /// Xandikos escapes commas twice where it says that a name is not there: then it must say nothing else. What else it escapes
    /// twice is not believed: it says so of names that are there, when they end with spaces.
    fileprivate func gone(_ path: [FileName], in found: [(path: [FileName], resource: ResourceStatus)]) -> ResourceStatus? {
        guard found.count == 1, let only = found.first, only.resource.status == 404,
            hasCommasEscapedTwice(only.path, of: path)
        else { return nil }
        return only.resource
    }
}

extension ResourceStatus {
    var version: ContentVersion {
        if isCollection { return WebDAVProvider.folderVersion }
        return entityTag.map { ContentVersion(EntityTag.opaque($0)) } ?? versionByTime
    }

    var versionByTime: ContentVersion { ContentVersion("\(contentLength ?? 0)-\(lastModified ?? "")") }

    /// Of a folder, as far as it is told.
    var quota: Quota? {
        guard let available = quotaAvailable else { return nil }
        // A store without a limit may say so with the largest number.
        let (total, isBeyond) = available.addingReportingOverflow(quotaUsed ?? 0)
        return Quota(total: isBeyond ? .max : total, available: available)
    }

    /// A name that is only locked (RFC 4918, appendix D.1), or that the server says is not there.
    var isNothing: Bool {
        if let status, !(200..<300).contains(status) { return true }
        return !isCollection && entityTag == nil && contentLength == nil && lastModified == nil
    }

    /// What a file must have that is not told, as the end of a sentence.
    var lack: String? {
        if isCollection { return nil }
        if contentLength == nil { return "says no size of it that can be" }
        return entityTag == nil && lastModified == nil ? "says neither its version nor its time" : nil
    }

    /// Why the server tells nothing of a resource, when it is not for its being gone.
    var trouble: Int? {
        refusals.union(status.map { [$0] } ?? []).filter { !(200..<300).contains($0) && $0 != 404 && $0 != 410 }.max()
    }
}
