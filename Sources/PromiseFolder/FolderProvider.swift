import Glibc
package import Logging
package import PromiseCore
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// A directory tree as the cloud: `folder:/path`. Other programs and other machines change it too, and several daemons may
/// share it.
///
/// **Threads.** Everything that blocks runs on two pools: uploads, which may take minutes, on one; everything else on the
/// other, where a call is one hop and a long fetch goes back to the end of the queue every few MiB.
///
/// **Locks.** `shared` and `places` are leaves: no system call is made under them. The lock file orders conditional writes of
/// all daemons; it is held for a check and two renames, never while content is copied. `searches` has a lock for each folder,
/// which is held while that is looked through; leaves are taken under it.
package final class FolderProvider: Provider, Sendable {
    /// What is known of the root since it was first reached.
    struct Root: Sendable {
        var own: String
        var device: UInt64
        /// The kernel's number of its mount.
        var mount: UInt64 = 0
        /// The file system's own identity, 0 where it has none.
        var fileSystem: UInt64
        /// Extended attributes work, so identifiers survive replaced content.
        var hasAttributes: Bool
        /// It is on a file system that other machines have, which may hang.
        var isShared = false
        /// The file system has no lasting names for files.
        var knowsByPlace = false
        var traits = FolderTraits()
        /// It was away, so another file system may have got the number of its own.
        var isDoubted = false
        /// Of the watcher, when it was last looked at closely.
        var unmountCount: UInt64 = 0

        var identifier: ItemIdentifier { ItemIdentifier(own) }
        /// What identifiers of what is in it are made of, and what tells it from other folders.
        var text: String { knowsByPlace ? "" : own }
    }

    struct Shared: Sendable {
        var root: Root?
        /// `.promisefs` was seen: files may carry marks.
        var hasStore = false
        /// The file system can exchange two files in one step (renameat2(2)).
        var canExchange = true
        var deviceTexts: [UInt64: String] = [:]
        /// Sorted names of large folders whose listing is under way.
        var listings: [ItemIdentifier: [[UInt8]]] = [:]
        var temporaryCount: UInt64 = 0
        /// Moves of ours that have begun, and that are known in `places`: while they differ, no path can be relied on.
        var movesBegun: UInt64 = 0
        var movesEnded: UInt64 = 0
        /// Noted before a move has ended.
        var moved = MovedPaths()
    }

    package let name: String
    let path: [UInt8]
    let logger: Logger
    /// Content is on the disk, not only in the kernel, when a write returns.
    let isDurable: Bool
    /// For tests: called between the last check of a conditional write and its taking effect.
    let beforeTakingEffect: (@Sendable () -> Void)?
    let clock: any TimeSource
    let watcher: FolderWatcher
    let pool: BlockingPool
    let uploadPool: BlockingPool
    let shared = Mutex(Shared())
    let writable: WritableFolders
    let marks = MarkMemory()
    package let searches = FolderSearches()
    let mounts: FolderMounts
    let knownPlaces: KnownPlaces
    /// By itself, as a listing learns many at a time.
    let places = Mutex(PlaceMap())
    /// Only where upper and lower case are one.
    let caseTwins = Mutex(CaseTwins())
    /// Makes the names of temporary files this provider's own.
    let instance: String

    /// `path` is absolute, as `parse` gives it. Reaches for nothing of it yet. `isDurable` false leaves out every fsync.
    package init(
        path: [UInt8], stateFolder: [UInt8]? = nil, knownPlaces: KnownPlaces = KnownPlaces(), logger: Logger,
        isDurable: Bool = true, clock: any TimeSource = SystemClock(),
        beforeTakingEffect: (@Sendable () -> Void)? = nil
    ) {
        self.path = path
        self.logger = logger
        self.isDurable = isDurable
        self.clock = clock
        self.beforeTakingEffect = beforeTakingEffect
        name = "folder:" + escapedForDisplay(path)
        instance = String(clock.now().rawValue, radix: 16) + "-" + String(getpid())
        self.knownPlaces = knownPlaces
        let mounts = FolderMounts(root: path == [0x2F] ? [] : path, stateFolder: stateFolder)
        self.mounts = mounts
        writable = WritableFolders(OpenedFolders(stateFolder: stateFolder, logger: logger))
        watcher = FolderWatcher(instance: instance, logger: logger, mountsInside: { mounts.inside })
        pool = BlockingPool(name: "folder", threads: 8)
        uploadPool = BlockingPool(name: "folder-upload", threads: 6)
    }

    deinit {
        watcher.stop()
        pool.stop()
        uploadPool.stop()
    }

    /// Asked for with each listed item, so it is not made anew.
    private static let certainCapabilities: Capabilities = [
        .atomicRename, .changeFeed, .changePush, .ranges, .quota, .thumbnails, .privateObjects,
    ]

    package var capabilities: Capabilities {
        let (canExchange, root) = shared.withLock { ($0.canExchange, $0.root) }
        var result = FolderProvider.certainCapabilities
        if canExchange { result.insert(.conditionalWrite) }
        if root?.hasAttributes ?? true { result.insert(.stableIdentifiers) }
        if root?.knowsByPlace == true { result.insert(.placeIdentifiers) }
        let kept = root?.traits.kept ?? .all
        if kept.isSuperset(of: [.modes, .times]) { result.insert(.metadata) }
        if kept.contains(.links) { result.insert(.links) }
        return result
    }

    /// Also removes temporary files that were left behind more than a day ago.
    package func connect() async throws(ProviderError) {
        try await onPool { () throws(ProviderError) in
            let root = try self.openRoot()
            let list = try mapped("the folder '\(escapedForDisplay(self.path))' cannot be listed: check its permissions") {
                () throws(SystemError) in try root.openForReading()
            }
            _ = consume list
            self.writable.putBack()
            self.removeOldUploads(root)
        }
    }

    package var executor: (any TaskExecutor)? { pool }

    package func root() async throws(ProviderError) -> Item {
        try await onPool { () throws(ProviderError) in try self.locatedRoot().item }
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await onPool { () throws(ProviderError) in try self.locatedExactly(reference).item }
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { watcher.anchor() }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage { try watcher.changes(since: anchor) }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) { try await watcher.wait(since: anchor) }

    package func quota() async throws(ProviderError) -> Quota? {
        try await onPool { () throws(ProviderError) in
            let root = try self.openRoot()
            var facts = statvfs()
            try mapped("the room in '\(escapedForDisplay(self.path))' is not known") { () throws(SystemError) in
                _ = try call("folder.quota") { fstatvfs(root.number, &facts) }
            }
            let unit = UInt64(facts.f_frsize)
            return Quota(total: UInt64(facts.f_blocks) * unit, available: UInt64(facts.f_bavail) * unit)
        }
    }

    /// One hop to a thread that may block.
    func onPool<Value: Sendable>(
        _ body: @escaping @Sendable () throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        return try await pool.run(body)
    }
}

/// Tells work on another thread that nobody waits for it any more.
final class CancellationFlag: Sendable {
    private let isSet = Atomic<Bool>(false)

    func set() { isSet.store(true, ordering: .relaxed) }

    func check() throws(ProviderError) {
        if isSet.load(ordering: .relaxed) { throw ProviderError(.cancelled, "the call was cancelled") }
    }
}
