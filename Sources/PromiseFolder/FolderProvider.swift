import Glibc
package import Logging
package import PromiseCore
package import PromiseProvider
package import PromiseSystem

/// For tests: called when a conditional write has taken effect, and has not been looked at yet.
package typealias TakenEffect = @Sendable () throws(ProviderError) -> Void

/// A directory tree as the cloud: `folder:/path`. Other programs and other machines change it too,
/// and several daemons may share it.
///
/// **Threads.** Everything that blocks runs on two pools: uploads, which may take minutes, on one;
/// everything else on the other, where a call is one hop and a long fetch goes back to the end of
/// the queue every few MiB.
///
/// **Locks.** What the types of this module keep is under leaves: no system call is made under
/// them. The lock file (`FolderLock`) orders conditional writes of all daemons; it is held for a
/// check and two renames, never while content is copied. `searches` has a lock for each folder,
/// which is held while that is looked through; leaves are taken under it.
package final class FolderProvider: Provider, Sendable {
    package var name: String { root.name }
    let root: FolderRoot
    let locator: FolderLocator
    let hidden: HiddenFolder
    let lock: FolderLock
    let writable: WritableFolders
    let files: TemporaryFiles
    let metadata: FolderMetadata
    let renames: FolderRenames
    let exchange: ContentExchange
    let mover: ItemMover
    let remover: FolderRemover
    let lister: FolderLister
    let fetcher: FolderFetcher
    let thumbnails: FolderThumbnails
    /// For tests: called between the last check of a conditional write and its taking effect.
    let beforeTakingEffect: (@Sendable () -> Void)?
    let pool: BlockingPool
    let uploadPool: BlockingPool
    package let searches = FolderSearches()

    /// `path` is absolute, as `parse` gives it. Reaches for nothing of it yet. `isDurable` false
    /// leaves out every fsync.
    package init(
        path: [UInt8], stateFolder: [UInt8]? = nil, knownPlaces: KnownPlaces = KnownPlaces(),
        logger: Logger,
        isDurable: Bool = true, clock: any TimeSource = SystemClock(),
        beforeTakingEffect: (@Sendable () -> Void)? = nil, afterTakingEffect: TakenEffect? = nil
    ) {
        self.beforeTakingEffect = beforeTakingEffect
        pool = BlockingPool(name: "folder", threads: 8)
        uploadPool = BlockingPool(name: "folder-upload", threads: 6)
        root = FolderRoot(
            path: path, stateFolder: stateFolder, logger: logger, isDurable: isDurable, clock: clock
        )
        writable = WritableFolders(OpenedFolders(stateFolder: stateFolder, logger: logger))
        hidden = HiddenFolder(root: root)
        lock = FolderLock(hidden: hidden)
        let names = FolderNames(root: root)
        let entries = FolderEntries(root: root, names: names, writable: writable)
        locator = FolderLocator(
            root: root, names: names, entries: entries, knownPlaces: knownPlaces, searches: searches
        )
        metadata = FolderMetadata(
            root: root, writable: writable, beforeTakingEffect: beforeTakingEffect)
        files = TemporaryFiles(hidden: hidden, entries: entries, metadata: metadata)
        renames = FolderRenames(root: root, lock: lock)
        exchange = ContentExchange(
            locator: locator, hidden: hidden, lock: lock, beforeTakingEffect: beforeTakingEffect,
            afterTakingEffect: afterTakingEffect)
        mover = ItemMover(
            locator: locator, renames: renames, beforeTakingEffect: beforeTakingEffect)
        thumbnails = FolderThumbnails(locator: locator, hidden: hidden)
        remover = FolderRemover(
            locator: locator, hidden: hidden, lock: lock, exchange: exchange,
            thumbnails: thumbnails,
            beforeTakingEffect: beforeTakingEffect, afterTakingEffect: afterTakingEffect)
        lister = FolderLister(locator: locator, hidden: hidden)
        fetcher = FolderFetcher(locator: locator, pool: pool)
    }

    deinit {
        root.watcher.stop()
        pool.stop()
        uploadPool.stop()
    }

    /// Asked for with each listed item, so it is not made anew.
    private static let certainCapabilities: Capabilities = [
        .atomicRename, .changeFeed, .changePush, .ranges, .quota, .thumbnails, .privateObjects,
    ]

    package var capabilities: Capabilities {
        let facts = root.knownFacts
        var result = FolderProvider.certainCapabilities
        if exchange.canExchange { result.insert(.conditionalWrite) }
        if facts?.hasAttributes ?? true { result.insert(.stableIdentifiers) }
        if facts?.knowsByPlace == true { result.insert(.placeIdentifiers) }
        let kept = root.kept
        if kept.isSuperset(of: [.modes, .times]) { result.insert(.metadata) }
        if kept.contains(.links) { result.insert(.links) }
        return result
    }

    package var privateObjects: (any PrivateObjects)? { FolderPrivateObjects(provider: self) }

    /// Also removes temporary files that were left behind more than a day ago.
    package func connect() async throws(ProviderError) {
        try await pool.runUnlessCancelled { [root, writable, hidden] () throws(ProviderError) in
            let top = try root.open()
            let what = "the folder '\(root.displayPath)' cannot be listed: check its permissions"
            let list = try mapped(what) { () throws(SystemError) in try top.openForReading() }
            _ = consume list
            writable.putBack()
            hidden.removeOldUploads(top)
        }
    }

    package var executor: (any TaskExecutor)? { pool }

    package func root() async throws(ProviderError) -> Item {
        try await pool.runUnlessCancelled { [locator] () throws(ProviderError) in
            try locator.locatedRoot().item
        }
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await pool.runUnlessCancelled { [locator] () throws(ProviderError) in
            try locator.locatedExactly(reference).item
        }
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?)
        async throws(ProviderError) -> ItemPage
    {
        try await pool.runUnlessCancelled { [lister] () throws(ProviderError) in
            try lister.list(folder, page: page)
        }
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        try await fetcher.fetch(of: reference, version: version, range: range, into: sink)
    }

    package func fetchThumbnail(
        of reference: ItemReference, version: ContentVersion, size: Int
    ) async throws(ProviderError) -> [UInt8]? {
        try await pool.runUnlessCancelled { [thumbnails] () throws(ProviderError) in
            try thumbnails.fetch(reference, version: version)
        }
    }

    package func saveThumbnail(
        _ picture: [UInt8], of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        try await pool.runUnlessCancelled { [thumbnails] () throws(ProviderError) in
            try thumbnails.save(picture, of: reference, version: version)
        }
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { root.watcher.anchor() }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try root.watcher.changes(since: anchor)
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await root.watcher.wait(since: anchor)
    }

    package func quota() async throws(ProviderError) -> Quota? {
        try await pool.runUnlessCancelled { [root] () throws(ProviderError) in
            let top = try root.open()
            var facts = statvfs()
            try mapped("the room in '\(root.displayPath)' is not known") { () throws(SystemError) in
                _ = try call("folder.quota") { fstatvfs(top.number, &facts) }
            }
            let unit = UInt64(facts.f_frsize)
            return Quota(
                total: UInt64(facts.f_blocks) * unit, available: UInt64(facts.f_bavail) * unit)
        }
    }
}
