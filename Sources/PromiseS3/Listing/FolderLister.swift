import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Lists a folder: one page of ListObjectsV2 with a delimiter, as items. Metadata is not in
/// listings: for a few objects of a folder it is asked for at once; for many the listing comes with
/// what it tells (`Item.isGuess`), and the rest is found afterwards.
struct FolderLister: Sendable {
    /// So many objects of a page of a listing are asked about before it is answered; what is more
    /// is asked afterwards.
    private static let eagerLooksMax = 64

    let bucket: S3Bucket
    let folders: BucketFolders
    let finder: DetailsFinder
    let listed: ListedFolders
    let items: S3Items
    let acquaintance: Acquaintance

    /// Throws `.notFound` when there is no such folder, `.retry` when an answer is not whole.
    func list(_ folder: ItemReference, _ page: PageToken?) async throws(ProviderError) -> ItemPage {
        let key = bucket.names.folderKey(folder.path)
        let what = "\(shown(folder.path)) cannot be listed"
        let began = bucket.clock.uptime()
        let listing = try await read(key, page, what)
        let isFirst = page == nil
        let isEmpty = listing.objects.isEmpty && listing.prefixes.isEmpty && listing.next == nil
        if isFirst, isEmpty, !folder.path.isEmpty {
            listed.forget(folder.identifier, key)
            throw ProviderError(.notFound, "\(shown(folder.path)) is no folder on the server")
        }
        listed.isListed(folder.identifier, key)
        let hiddenBefore = isFirst ? 0 : listed.hiddenCount(in: key)
        var rows = S3Rows(listing, in: key, bucket.names, isRoot: folder.path.isEmpty)
        // A file's name may be a folder's on the next page: `a` comes before `a!`, and that before
        // `a/`.
        if listing.next != nil {
            try await rows.renameFilesBesideFolders { (key) async throws(ProviderError) in
                !(try await bucket.first(1, key + [KeyNames.slash], what).isEmpty)
            }
        }
        folders.listed(listing, in: key, isFirst: isFirst, at: began)
        note(rows.hidden, in: key, before: hiddenBefore)
        noteMarker(listing, key)
        let items = try await show(rows, in: folder)
        let isCertain = !items.contains(where: \.isGuess)
        listed.listed(key, listing, isFirst: isFirst, isCertain: isCertain)
        return ItemPage(items: items, next: listing.next.map { PageToken(rawValue: $0.text) })
    }

    /// What some keys stand for is known when it is known what the server cannot keep.
    private func read(
        _ key: [UInt8], _ page: PageToken?, _ what: String
    ) async throws(ProviderError) -> S3Listing {
        let next = page.flatMap { S3Listing.Next($0.rawValue) }
        let listing = try await bucket.list(key, delimiter: true, from: next, what)
        guard !bucket.isAcquainted, listing.mayBeWrittenOtherwise else { return listing }
        try await acquaintance.complete()
        return try await bucket.list(key, delimiter: true, from: next, what)
    }

    private func note(_ hidden: [[UInt8]], in folder: [UInt8], before: Int) {
        let count = before + hidden.count
        let example = hidden.first.map { escapedForDisplay($0) }
        if listed.hides(count, in: folder, example: example), let example {
            bucket.logger.warning(
                "keys that cannot be file names are not shown",
                metadata: ["count": "\(count)", "first": "\(example)"])
        }
    }

    /// A marker tells its tag and time in its own folder's listing only; another one than before
    /// may say something else.
    private func noteMarker(_ listing: S3Listing, _ key: [UInt8]) {
        guard let marker = listing.objects.first(where: { $0.key == key }) else { return }
        folders.hasMarker(key)
        let stamp = KnownDetails.Stamp(tag: marker.tag, lastModified: marker.lastModified)
        guard bucket.details.isChanged(marker: key, stamp) else { return }
        bucket.details.forget(key)
        // That tells it.
        listed.mustBeListed(KeyNames.folder(above: key.dropLast()))
        finder.find([key])
    }

    private func show(_ rows: S3Rows, in folder: ItemReference) async throws(ProviderError)
        -> [Item]
    {
        var items: [Item] = []
        items.reserveCapacity(rows.files.count + rows.folders.count)
        var unknown: [(index: Int, key: [UInt8])] = []
        for row in rows.folders {
            let answer = bucket.details.answer(row.key, .folder)
            items.append(item(row, kind: .folder, answer, in: folder))
            if answer == .unknown { unknown.append((items.count - 1, row.key)) }
        }
        for row in rows.files {
            let stamp = KnownDetails.Stamp(tag: row.tag, lastModified: row.lastModified)
            let answer = bucket.details.answer(row.key, stamp, size: row.size)
            items.append(item(row, kind: .file, answer, in: folder))
            if answer == .unknown { unknown.append((items.count - 1, row.key)) }
        }
        guard bucket.traits.keepsMetadata, !unknown.isEmpty else { return items }
        if unknown.count > FolderLister.eagerLooksMax {
            finder.find(unknown.map(\.key))
            // What may stand for nothing is not shown before.
            let doubtful = unknown.filter {
                let item = items[$0.index]
                return item.kind == .file && HollowObject.mayBeOne(size: item.size)
            }
            unknown = Array(doubtful.prefix(FolderLister.eagerLooksMax))
        }
        let found = try await finder.look(unknown.map(\.key))
        let gone = unknown.filter { found[$0.key] == nil }.map(\.index)
        for (index, key) in unknown {
            let row =
                index < rows.folders.count
                ? rows.folders[index] : rows.files[index - rows.folders.count]
            guard let known = found[key] else { continue }
            // This listing tells it by that; what the finder finds nobody has heard yet.
            let stamp = KnownDetails.Stamp(tag: row.tag, lastModified: row.lastModified)
            bucket.details.tell(key, items[index].kind == .folder ? .folder : stamp)
            items[index] = item(row, kind: items[index].kind, .known(known), in: folder)
        }
        for index in gone.sorted(by: >) { items.remove(at: index) }
        return items
    }

    private func item(
        _ row: S3Rows.Row, kind: NodeKind, _ answer: KnownDetails.Answer, in folder: ItemReference
    ) -> Item {
        var known: ObjectDetails?
        if case .known(let details) = answer { known = details }
        // What is not kept is no guess.
        if known == nil, !bucket.traits.keepsMetadata { known = ObjectDetails() }
        return items.item(
            folder.path + [row.name], kind: kind, tag: row.tag, size: row.size,
            lastModified: row.lastModified, known,
            parent: folder.identifier)
    }
}
