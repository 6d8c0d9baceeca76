import AsyncHTTPClient
import Glibc
import Logging
import NIOHTTP1
package import PromiseCore
import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

// Looking: ListObjectsV2 for what there is, HEAD for what it does not tell, GET for content.

/// The names this provider keeps things under; they are no items.
enum ReservedName {
    /// In the root only.
    static let folder = FileName(trusted: Array(".promisefs".utf8))
    /// In every folder, where a server keeps no keys that end with a slash.
    static let keeper = FileName(trusted: Array(KeyNames.keeper.utf8))
}

extension S3Provider {
    static let folderVersion = ContentVersion("folder")
    /// So many objects of a page of a listing are asked about before it is answered; what is more is asked afterwards.
    private static let eagerLooksMax = 64
    /// A link's target is no longer than a path (path_resolution(7)).
    private static let targetByteCountMax: UInt64 = 4096

    // MARK: Items

    func identifier(_ path: some Collection<FileName>) -> ItemIdentifier {
        if path.isEmpty { return ItemIdentifier("s3://\(location.bucket)/\(S3Location.encoded(location.prefix))") }
        return ItemIdentifier("/" + S3Location.encoded(Array(path.map(\.bytes).joined(separator: [KeyNames.slash]))))
    }

    /// `parent`: as the caller calls the folder; nil: by its place. Without `details` the metadata is a guess.
    func item(
        _ path: [FileName], kind: NodeKind, tag: String, size: UInt64, lastModified: Timestamp, _ details: ObjectDetails?,
        parent: ItemIdentifier?
    ) -> Item {
        let target = kind == .folder ? nil : details?.target
        let kind: NodeKind = target == nil ? kind : .link
        let metadata = (details ?? ObjectDetails()).metadata(
            kind: kind, lastModified: lastModified, owner: geteuid(), group: getegid())
        var item = Item(
            identifier: identifier(path), parent: path.isEmpty ? nil : parent ?? identifier(path.dropLast()),
            name: path.last ?? FileName(trusted: Array("root".utf8)), kind: kind,
            size: kind == .folder ? 0 : target.map { UInt64($0.count) } ?? size, metadata: metadata,
            version: kind == .folder ? S3Provider.folderVersion : ContentVersion(tag), target: target)
        item.isGuess = details == nil
        return item
    }

    func item(_ status: ObjectStatus, _ path: [FileName], parent: ItemIdentifier?) -> Item {
        item(
            path, kind: .file, tag: status.tag, size: status.size, lastModified: status.lastModified, status.details,
            parent: parent)
    }

    func folderItem(_ path: [FileName], parent: ItemIdentifier?) async throws(ProviderError) -> Item {
        let found = path.isEmpty && location.prefix.isEmpty ? nil : try await folderDetails(names.folderKey(path))
        return item(
            path, kind: .folder, tag: "", size: 0, lastModified: .zero, found ?? ObjectDetails(), parent: parent)
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await finishMoves(at: reference.path)
        if reference.path.isEmpty { return try await root() }
        var found: Item
        // Also tells that the bucket is there: HEAD says the same of a key and of everything that is missing.
        if try await isFolder(reference.path) {
            found = try await folderItem(reference.path, parent: nil)
        } else {
            try await checkIsBeside(reference.path)
            found = item(try await status(of: reference.path), reference.path, parent: nil)
        }
        found.identifier = reference.identifier
        return found
    }

    /// Whether there is a key below a path.
    func isFolder(_ path: [FileName]) async throws(ProviderError) -> Bool {
        !(try await first(1, names.folderKey(path), "\(shown(path)) cannot be looked at").isEmpty)
    }

    /// The same for a name that is free as far as we know: a moment ago is soon enough.
    func hasBecomeFolder(_ path: [FileName]) async throws(ProviderError) -> Bool {
        let (key, folder) = (names.folderKey(path), names.folderKey(path.dropLast()))
        if seenFolders.isMissing(key, in: folder, at: clock.uptime()) { return false }
        return try await isFolder(path)
    }

    /// So many objects, or all there are, whose keys begin so. A server may send empty pages on the way to them.
    func first(_ count: Int, _ prefix: [UInt8], _ what: String) async throws(ProviderError) -> [S3Listing.Object] {
        var result: [S3Listing.Object] = []
        var next: S3Listing.Next?
        repeat {
            let page = try await list(prefix, delimiter: false, max: count, from: next, what)
            result += page.objects
            next = page.next
        } while result.count < count && next != nil
        return result
    }

    /// Throws `.notFound` when there is no such object.
    func status(of path: [FileName]) async throws(ProviderError) -> ObjectStatus {
        let key = names.key(path)
        guard let found = try await status(ofKey: key, "\(shown(path)) cannot be looked at") else {
            throw ProviderError(.notFound, "\(shown(path)) is not on the server")
        }
        details.note(key, stamp(found), found.details, size: found.size)
        return found
    }

    /// What listings will say of what a look found.
    private func stamp(_ found: ObjectStatus) -> KnownDetails.Stamp {
        KnownDetails.Stamp(tag: found.tag, lastModified: traits.listsTrueTimes ? found.lastModified : nil)
    }

    /// Nil when there is no such object. Of a link, with its target.
    func status(ofKey key: [UInt8], _ what: String) async throws(ProviderError) -> ObjectStatus? {
        guard let found = try await anyStatus(ofKey: key, what), !HollowObject.isOne(found) else { return nil }
        return found
    }

    /// Also of what stands for nothing.
    func anyStatus(ofKey key: [UInt8], _ what: String) async throws(ProviderError) -> ObjectStatus? {
        let reply = try await client.exchange(S3Request(.HEAD, key))
        if reply.status == 404 { return nil }
        guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        var status = ObjectStatus(reply.headers)
        guard status.isWhole || key.last == KeyNames.slash else {
            throw ProviderError(.permanent, "\(what): the server says no size or no version of it that can be")
        }
        guard status.details.isLink, status.size <= S3Provider.targetByteCountMax else { return status }
        let content = try await client.succeed(S3Request(.GET, key), what)
        guard EntityTag.opaque(content.header("ETag") ?? "") == status.tag, !content.body.isEmpty else { return status }
        status.details.target = Array(content.body)
        return status
    }

    /// Of a marker; nil when there is none.
    private func folderDetails(_ key: [UInt8]) async throws(ProviderError) -> ObjectDetails? {
        if let known = details.known(key, .folder) { return known }
        let found = try await status(ofKey: key, "a folder's marker cannot be looked at")
        if found != nil { _ = shared.withLock { $0.markers.insert(key) } }
        var result = found?.details ?? ObjectDetails()
        if let found, result.modificationTime == nil { result.modificationTime = found.lastModified }
        details.note(key, .folder, result)
        return result
    }

    // MARK: Listing

    func listingQuery(_ prefix: [UInt8], delimiter: Bool, max: Int, from: S3Listing.Next? = nil) -> [QueryItem] {
        var query = [QueryItem("list-type", "2"), QueryItem("encoding-type", "url"), QueryItem("max-keys", "\(max)")]
        if !prefix.isEmpty { query.append(QueryItem("prefix", key: prefix)) }
        if delimiter { query.append(QueryItem("delimiter", "/")) }
        switch from {
        case .token(let token): query.append(QueryItem("continuation-token", token))
        case .after(let key): query.append(QueryItem("start-after", key: key))
        case nil: break
        }
        return query
    }

    func list(
        _ prefix: [UInt8], delimiter: Bool, max: Int = 1000, from: S3Listing.Next? = nil, _ what: String
    ) async throws(ProviderError) -> S3Listing {
        let query = listingQuery(prefix, delimiter: delimiter, max: max, from: from)
        let reply = try await client.succeed(S3Request(.GET, nil, query), what)
        // A reply cut off in the middle would look like a folder with fewer items. What cannot be is not left out: it is there.
        guard var listing = await pool.run({ S3Listing.parse(reply.body) }) else {
            throw ProviderError(.retry, "\(what): the server's answer is not whole")
        }
        if let key = listing.impossible {
            throw ProviderError(
                .permanent,
                "\(what): the server says no size or no version of "
                    + "'\(escapedForDisplay(key.prefix(200)))' that can be")
        }
        if !traits.keepsMarkers { listing.readKeepers() }
        try listing.check(after: from, what)
        return listing
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await finishMoves(at: folder.path)
        let key = names.folderKey(folder.path)
        let what = "\(shown(folder.path)) cannot be listed"
        let began = clock.uptime()
        let next = page.flatMap { S3Listing.Next($0.rawValue) }
        var listing = try await list(key, delimiter: true, from: next, what)
        if !isAcquainted, listing.mayBeWrittenOtherwise {
            try await acquaintance.complete()
            listing = try await list(key, delimiter: true, from: next, what)
        }
        if page == nil, listing.objects.isEmpty, listing.prefixes.isEmpty, listing.next == nil, !folder.path.isEmpty {
            shared.withLock { shared in
                shared.folders[folder.identifier] = nil
                shared.digests.forget(key)
            }
            throw ProviderError(.notFound, "\(shown(folder.path)) is no folder on the server")
        }
        shared.withLock { $0.folders[folder.identifier] = key }
        let hiddenBefore = page == nil ? 0 : shared.withLock { $0.hidden[key]?.count ?? 0 }
        var rows = S3Rows(listing, in: key, names, isRoot: folder.path.isEmpty)
        // A file's name may be a folder's on the next page: `a` comes before `a!`, and that before `a/`.
        if listing.next != nil {
            try await rows.renameFilesBesideFolders { (key) async throws(ProviderError) in
                !(try await first(1, key + [KeyNames.slash], what).isEmpty)
            }
        }
        seenFolders.listed(listing.prefixes, in: key, isFirst: page == nil, isLast: listing.next == nil, at: began)
        note(rows.hidden, in: key, before: hiddenBefore)
        noteMarker(listing, key)
        let items = try await items(rows, in: folder)
        let isCertain = !items.contains(where: \.isGuess)
        shared.withLock { $0.digests.listed(key, listing, isFirst: page == nil, isCertain: isCertain) }
        return ItemPage(items: items, next: listing.next.map { PageToken(rawValue: $0.text) })
    }

    private func note(_ hidden: [[UInt8]], in folder: [UInt8], before: Int) {
        let count = before + hidden.count
        let example = hidden.first.map { escapedForDisplay($0) }
        let isNews = shared.withLock { shared in
            let old = shared.hidden[folder]
            shared.hidden[folder] = count == 0 ? nil : (count, example ?? old?.example ?? "")
            return count > 0 && old == nil
        }
        if isNews, let example {
            logger.warning(
                "keys that cannot be file names are not shown", metadata: ["count": "\(count)", "first": "\(example)"])
        }
    }

    /// A marker tells its tag and time in its own folder's listing only; another one than before may say something else.
    private func noteMarker(_ listing: S3Listing, _ key: [UInt8]) {
        guard let marker = listing.objects.first(where: { $0.key == key }) else { return }
        _ = shared.withLock { $0.markers.insert(key) }
        let stamp = KnownDetails.Stamp(tag: marker.tag, lastModified: marker.lastModified)
        guard details.isChanged(marker: key, stamp) else { return }
        details.forget(key)
        // That tells it.
        shared.withLock { $0.digests.forget(KeyNames.folder(above: key.dropLast())) }
        finder.find([key], for: self)
    }

    private func items(_ rows: S3Rows, in folder: ItemReference) async throws(ProviderError) -> [Item] {
        var items: [Item] = []
        items.reserveCapacity(rows.files.count + rows.folders.count)
        var unknown: [(index: Int, key: [UInt8])] = []
        for row in rows.folders {
            let answer = details.answer(row.key, .folder)
            items.append(item(row, kind: .folder, answer, in: folder))
            if answer == .unknown { unknown.append((items.count - 1, row.key)) }
        }
        for row in rows.files {
            let stamp = KnownDetails.Stamp(tag: row.tag, lastModified: row.lastModified)
            let answer = details.answer(row.key, stamp, size: row.size)
            items.append(item(row, kind: .file, answer, in: folder))
            if answer == .unknown { unknown.append((items.count - 1, row.key)) }
        }
        guard traits.keepsMetadata, !unknown.isEmpty else { return items }
        if unknown.count > S3Provider.eagerLooksMax {
            finder.find(unknown.map(\.key), for: self)
            // What may stand for nothing is not shown before.
            unknown = Array(unknown.filter { items[$0.index].size == 0 && items[$0.index].kind == .file }.prefix(64))
        }
        let found = try await look(unknown.map(\.key))
        let gone = unknown.filter { found[$0.key] == nil }.map(\.index)
        for (index, key) in unknown {
            let row = index < rows.folders.count ? rows.folders[index] : rows.files[index - rows.folders.count]
            guard let known = found[key] else { continue }
            // This listing tells it by that; what the finder finds nobody has heard yet.
            let stamp = KnownDetails.Stamp(tag: row.tag, lastModified: row.lastModified)
            details.tell(key, items[index].kind == .folder ? .folder : stamp)
            items[index] = item(row, kind: items[index].kind, .known(known), in: folder)
        }
        for index in gone.sorted(by: >) { items.remove(at: index) }
        return items
    }

    private func item(_ row: S3Rows.Row, kind: NodeKind, _ answer: KnownDetails.Answer, in folder: ItemReference) -> Item {
        var known: ObjectDetails?
        if case .known(let details) = answer { known = details }
        // What is not kept is no guess.
        if known == nil, !traits.keepsMetadata { known = ObjectDetails() }
        return item(
            folder.path + [row.name], kind: kind, tag: row.tag, size: row.size, lastModified: row.lastModified, known,
            parent: folder.identifier)
    }

    /// Asks for what listings do not tell, of several objects at the same time. What is gone meanwhile is left out.
    func look(_ keys: [[UInt8]]) async throws(ProviderError) -> [[UInt8]: ObjectDetails] {
        try await concurrently(keys) { [self] (key) async throws(ProviderError) -> ([UInt8], ObjectDetails)? in
            if key.last == KeyNames.slash { return (key, try await folderDetails(key) ?? ObjectDetails()) }
            guard let found = try await anyStatus(ofKey: key, "an object cannot be looked at") else { return nil }
            if HollowObject.isOne(found) {
                if isAcquainted, isForsaken(found) { _ = try await removeHollow(key, "an object cannot be removed") }
                return nil
            }
            details.note(key, stamp(found), found.details, size: found.size)
            return (key, found.details)
        }.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    // MARK: Content

    /// A fetch tells of an object what a look at it would, except where a link points.
    private func learn(_ key: [UInt8], from headers: HTTPHeaders) {
        let found = ObjectStatus(headers)
        guard traits.keepsMetadata, !found.details.isLink else { return }
        details.note(key, stamp(found), found.details)
        finder.isFound(key)
    }

    /// In a bucket that keeps versions, whoever has begun to read one goes on with it when the object has another one or is gone.
    /// Who begins to read hears of that.
    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await finishMoves(at: reference.path)
        if let range, range.isEmpty { return }
        let read = ReadVersion(key: names.key(reference.path), tag: version.rawValue)
        do throws(ProviderError) {
            try await fetch(read, number: nil, range, into: sink, shown(reference.path))
        } catch {
            guard error.code == .stale || error.code == .notFound, let number = shared.withLock({ $0.readVersions[read] }) else {
                throw error
            }
            try await fetch(read, number: number, range, into: sink, shown(reference.path))
        }
    }

    /// `number`: how the server calls the version; nil: the one that it has now.
    func fetch(
        _ read: ReadVersion, number: String?, _ range: ByteRange?, into sink: any ContentSink, _ shown: String
    ) async throws(ProviderError) {
        let what = "\(shown) cannot be fetched"
        var request = S3Request(.GET, read.key, number.map { [QueryItem("versionId", $0)] } ?? [])
        if let range {
            request.headers.add(name: "Range", value: "bytes=\(range.lower)-\(range.upper - 1)")
        } else {
            request.headers.add(name: "x-amz-checksum-mode", value: "ENABLED")
        }
        let response = try await client.open(request)
        guard response.status.code == 200 || response.status.code == 206 else {
            throw client.refusal(try await client.transport.whole(response, .GET)).error(what)
        }
        // Every reply names what it sends, which no server gets wrong as some do conditions.
        guard EntityTag.opaque(response.headers.first(name: "ETag") ?? "") == read.tag else {
            throw ProviderError(.stale, "\(shown) has another version on the server")
        }
        if number == nil {
            learn(read.key, from: response.headers)
            note(read, response.headers.first(name: "x-amz-version-id"))
        }
        let content = ReplyContent(response: response, range: range, size: ReplyContent.wholeSize(response), what: what)
        let digest = response.status.code == 200 ? ContentDigest(amazon: response.headers) : nil
        try await content.write(into: sink, verifiedBy: range == nil ? digest : nil, pool: pool, server: location.endpoint)
    }

    /// More readers than that at once do not go on.
    private static let readVersionsMax = 10_000

    private func note(_ read: ReadVersion, _ number: String?) {
        // What was written before the bucket kept versions is called that, and goes when it is replaced.
        guard let number, number != "null" else { return }
        shared.withLock { shared in
            if shared.readVersions.count >= S3Provider.readVersionsMax { shared.readVersions = [:] }
            shared.readVersions[read] = number
        }
    }
}

/// A content that somebody has begun to read.
struct ReadVersion: Hashable, Sendable {
    var key: [UInt8]
    var tag: String
}
