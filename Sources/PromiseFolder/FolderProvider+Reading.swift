import Glibc
import Logging
package import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

// Listing folders and sending content.

extension FolderProvider {
    /// Larger folders are listed in pages of this many names: who reads the folder sees the first while the others are made.
    static let pageSize = 2_048
    /// The first page is shorter, as somebody waits for it.
    static let firstPageSize = 256
    /// Unfinished listings of large folders that are remembered; a forgotten one is read again.
    private static let listingCountMax = 16
    /// How much of a content is sent before the thread serves somebody else.
    private static let hopByteCount: UInt64 = 4 << 20
    private static let pieceByteCount: UInt64 = 1 << 20

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await onPool { () throws(ProviderError) in try self.list(folder, page: page) }
    }

    private func list(_ reference: ItemReference, page: PageToken?) throws(ProviderError) -> ItemPage {
        // What the root shows decides about everything: without watches nobody says that the file system is another one.
        if reference.path.isEmpty && page == nil { shared.withLock { $0.root?.isDoubted = true } }
        let folder: LocatedFolder
        do throws(ProviderError) {
            folder = try locateFolder(reference)
        } catch {
            if case .notFound = error.code { watcher.unwatch(reference.identifier) }
            throw error
        }
        // Before the names are read, so that whatever happens after is told.
        if page == nil { watcher.watch(folder.identifier, descriptor: folder.folder.number) }
        let (names, next) = try self.names(in: folder, page: page)
        let marks = readsMarks(folder.folder, isRoot: folder.isRoot)
        let hasEscapes = rootFacts.traits.escapes != nil
        let twins = try mapped("'\(display(folder.path))' cannot be listed") { () throws(SystemError) in
            rootFacts.traits.ignoresCase ? try lookForTwins(in: folder.folder, folder.text).twins : [:]
        }
        let (root, sight) = (try openRoot(), FolderSight(provider: self))
        let items = try mapped("'\(display(folder.path))' cannot be listed") { () throws(SystemError) in
            var items: [Item] = []
            items.reserveCapacity(names.count)
            for name in names {
                if hasEscapes, !isShown(name, twins) {
                    logger.warning("a name is no item's and is not shown", metadata: ["name": "\(escapedForDisplay(name))"])
                    continue
                }
                guard let found = try entry(name, in: folder.folder.number, parent: folder.text, readsMarks: marks) else {
                    continue
                }
                let path = folder.path + [found.shownName]
                let shown = sight.shown(found, at: path, in: folder.identifier, root: root) { folder.mount }
                items.append(shown.item(parent: folder.identifier))
            }
            return items
        }
        places.withLock { places in
            for item in items { places.learn(item.identifier, parent: folder.identifier, name: item.name) }
        }
        return ItemPage(items: items, next: next)
    }

    /// Of two of one name, the plain one is.
    private func isShown(_ name: [UInt8], _ twins: [FileName: [UInt8]]) -> Bool {
        guard let shown = shown(name) else { return false }
        return stored(shown) == name || twins[shown] == name
    }

    private func readsMarks(_ folder: OpenFolder, isRoot: Bool) -> Bool {
        if isRoot { return readsMarks(folder) }
        return shared.withLock { $0.hasStore && $0.root?.hasAttributes == true }
    }

    /// The names of one page. A small folder is one page in the order of the disk. The pages of a large one go by the order
    /// of names, and the token is the last name of the page before: nothing is lost when the listing was forgotten.
    private func names(in folder: LocatedFolder, page: PageToken?) throws(ProviderError) -> (names: [[UInt8]], next: PageToken?) {
        var all: [[UInt8]]
        if page != nil, let remembered = shared.withLock({ $0.listings[folder.identifier] }) {
            all = remembered
        } else {
            all = try mapped("'\(display(folder.path))' cannot be listed") { () throws(SystemError) in
                try listFolder(try folder.folder.openForReading(), label: "folder.list.read").map(\.name)
            }
            all.removeAll { ReservedName.contains($0, inRoot: folder.isRoot) }
            if page == nil, all.count <= FolderProvider.pageSize { return (all, nil) }
            all.sort { $0.lexicographicallyPrecedes($1) }
            shared.withLock { [all] shared in
                if shared.listings.count >= FolderProvider.listingCountMax { shared.listings.removeAll() }
                shared.listings[folder.identifier] = all
            }
        }
        var start = 0
        if let page {
            guard let last = bytes(hexadecimal: page.rawValue) else {
                throw ProviderError(.refused, "'\(page.rawValue)' is no page of a listing")
            }
            start = firstIndex(after: last, in: all)
        }
        let end = min(start + (page == nil ? FolderProvider.firstPageSize : FolderProvider.pageSize), all.count)
        guard end < all.count else {
            shared.withLock { $0.listings[folder.identifier] = nil }
            return (Array(all[start..<end]), nil)
        }
        return (Array(all[start..<end]), PageToken(rawValue: hexadecimalText(all[end - 1])))
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let flag = CancellationFlag()
        let outcome: Result<Void, ProviderError> = await withTaskCancellationHandler {
            do throws(ProviderError) {
                // The first hop is the only one for a small content.
                var rest = try await onPool { () throws(ProviderError) -> Fetch? in
                    let fetch = try self.beginFetch(of: reference, version: version, range: range)
                    return try self.send(fetch, into: sink, flag: flag)
                }
                while let fetch = rest {
                    // In turn with others.
                    await Task.yield()
                    rest = try await onPool { () throws(ProviderError) in try self.send(fetch, into: sink, flag: flag) }
                }
                return .success(())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            flag.set()
        }
        try outcome.get()
    }

    private func beginFetch(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?
    ) throws(ProviderError) -> Fetch {
        let located = try locate(reference)
        guard located.entry.status.kind == .file else {
            throw ProviderError(.stale, "'\(display(located.path))' is no file any more")
        }
        guard located.entry.version == version else { throw staleContent(located.path) }
        let file = try mapped("'\(display(located.path))' cannot be read") { () throws(SystemError) in
            // Without O_NONBLOCK, a fifo that took the file's place would hold the thread.
            try Descriptor.open(
                located.entry.name, in: located.folder.number, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
                label: "folder.fetch.open")
        }
        let size = located.entry.status.size
        let root = rootFacts
        let fetch = Fetch(
            file: file, version: version, path: located.path,
            range: (range ?? ByteRange(0, size)).clamped(to: size),
            mayHang: root.isShared || located.entry.status.device != root.device)
        try checkVersion(fetch)
        return fetch
    }

    /// Sends one hop's worth; nil when everything was sent and still is the version that was asked for.
    private func send(_ fetch: Fetch, into sink: any ContentSink, flag: CancellationFlag) throws(ProviderError) -> Fetch? {
        let end = min(fetch.range.upper, fetch.range.lower + FolderProvider.hopByteCount)
        var position = fetch.range.lower
        while position < end {
            try flag.check()
            let count = min(end - position, FolderProvider.pieceByteCount)
            let sent =
                fetch.mayHang
                ? try read(fetch, ByteRange(offset: position, count: count), into: sink)
                : try sink.copy(from: fetch.file.number, at: position, to: position, count: count)
            guard sent == count else { throw staleContent(fetch.path) }
            position += count
        }
        if position < fetch.range.upper {
            var rest = fetch
            rest.range.lower = position
            return rest
        }
        try checkVersion(fetch)
        sink.finish()
        return nil
    }

    /// Through memory: what takes bytes from a file itself holds up whoever writes to the same
    /// place meanwhile, or unmounts, and a file system of other machines may never give them.
    private func read(
        _ fetch: Fetch, _ range: ByteRange, into sink: any ContentSink
    ) throws(ProviderError) -> UInt64 {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(range.count), alignment: 4096)
        defer { buffer.deallocate() }
        let (number, problem) = (fetch.file.number, "'\(display(fetch.path))' cannot be read")
        let count = try mapped(problem) { () throws(SystemError) in
            try readFully(number, into: buffer, at: range.lower, label: "folder.fetch.read")
        }
        try sink.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: range.lower)
        return UInt64(count)
    }

    private func checkVersion(_ fetch: Fetch) throws(ProviderError) {
        let now = try mapped("'\(display(fetch.path))' cannot be read") { () throws(SystemError) in
            let status = try FileStatus.of(descriptor: fetch.file.number, label: "folder.fetch.status")
            let own = knowsByPlace ? nil : try ownIdentity([], in: fetch.file.number, status: status)
            return FolderEntry.version(status, own, target: nil)
        }
        guard now == fetch.version else { throw staleContent(fetch.path) }
    }

    private func staleContent(_ path: [FileName]) -> ProviderError {
        ProviderError(.stale, "'\(display(path))' was changed in the folder")
    }
}

/// A content on its way, and what of it is still to be sent.
private struct Fetch: Sendable {
    let file: SharedDescriptor
    let version: ContentVersion
    let path: [FileName]
    var range: ByteRange
    /// Its file system is another machine's, or another than the folder's.
    let mayHang: Bool

    init(
        file: consuming Descriptor, version: ContentVersion, path: [FileName], range: ByteRange,
        mayHang: Bool
    ) {
        self.file = SharedDescriptor(file)
        self.mayHang = mayHang
        self.version = version
        self.path = path
        self.range = range
    }
}

private func firstIndex(after name: [UInt8], in sorted: [[UInt8]]) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
        let middle = (low + high) / 2
        if name.lexicographicallyPrecedes(sorted[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
}
