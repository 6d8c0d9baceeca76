import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// The root of the folder on its disk: opened anew for every call, and recognised, as the disk may
/// be unmounted and another one be at its place. Also what its file system is able to, and who a
/// file of it is (`ownIdentity`).
///
/// `state` is a leaf: no system call is made under it.
final class FolderRoot: Sendable {
    /// What is known of it since it was first reached.
    struct Facts: Sendable {
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

    private struct State {
        var facts: Facts?
        /// `.promisefs` was seen: files may carry marks.
        var hasStore = false
        var deviceTexts: [UInt64: String] = [:]
    }

    let name: String
    let path: [UInt8]
    let logger: Logger
    /// Content is on the disk, not only in the kernel, when a write returns.
    let isDurable: Bool
    let clock: any TimeSource
    let watcher: FolderWatcher
    let mounts: FolderMounts
    let temporaries: TemporaryNames
    private let records: FolderRecords
    private let state = Mutex(State())

    init(
        path: [UInt8], stateFolder: [UInt8]?, logger: Logger, isDurable: Bool, clock: any TimeSource
    ) {
        self.path = path
        self.logger = logger
        self.isDurable = isDurable
        self.clock = clock
        name = "folder:" + escapedForDisplay(path)
        let instance = String(clock.now().rawValue, radix: 16) + "-" + String(getpid())
        let mounts = FolderMounts(root: path == [0x2F] ? [] : path, stateFolder: stateFolder)
        self.mounts = mounts
        watcher = FolderWatcher(
            instance: instance, logger: logger, mountsInside: { mounts.inside })
        temporaries = TemporaryNames(instance: instance, logger: logger)
        records = FolderRecords(isDurable: isDurable, names: temporaries)
    }

    var displayPath: String { escapedForDisplay(path) }

    // MARK: What is known of it

    /// Nil until it has been reached.
    var knownFacts: Facts? { state.withLock { $0.facts } }

    /// Known once `open` has returned.
    var facts: Facts {
        guard let facts = knownFacts else {
            preconditionFailure("the root is opened before it is asked about")
        }
        return facts
    }

    /// What the file system keeps of what is put into it.
    var kept: FolderTraits.Kept { knownFacts?.traits.kept ?? .all }

    var knowsByPlace: Bool { knownFacts?.knowsByPlace ?? false }

    var ignoresCase: Bool { knownFacts?.traits.ignoresCase == true }

    /// It may be another file system now: without watches nobody says so.
    func doubt() { state.withLock { $0.facts?.isDoubted = true } }

    func noteStore() { state.withLock { $0.hasStore = true } }

    /// Files may carry marks, as far as is known.
    var mayHaveMarks: Bool { state.withLock { $0.hasStore && $0.facts?.hasAttributes == true } }

    // MARK: Opening

    /// The root, opened anew for every call so that its disk can be unmounted. `.permanent` when it
    /// never was there, `.offline` when it was and now is not: an unmounted disk leaves an empty
    /// folder, which must not be taken for a cloud whose items were all deleted.
    func open() throws(ProviderError) -> OpenFolder {
        let known = knownFacts
        let folder: OpenFolder
        do throws(SystemError) {
            folder = OpenFolder(
                try Descriptor.open(
                    path, flags: openPathOnly | O_DIRECTORY, label: "folder.root.open"))
        } catch {
            guard known == nil else {
                doubt()
                throw ProviderError(
                    .offline, "the folder '\(displayPath)' is not there now: \(error.reason)")
            }
            throw ProviderError(firstOpening: displayPath, error)
        }
        do throws(SystemError) {
            if let known {
                if try isRoot(folder, as: known) { return folder }
            } else {
                try learnRoot(folder)
                return folder
            }
        } catch {
            if error.errno == FolderRecord.unreadable {
                let file = "\(displayPath)/.promisefs/store.json"
                throw ProviderError(
                    .permanent,
                    "'\(file)' is damaged: "
                        + "restore it, or remove it and mount with another --state-dir"
                )
            }
            throw ProviderError(error, "the folder '\(displayPath)' cannot be used")
        }
        throw ProviderError(
            .offline, "another folder is at '\(displayPath)' now: is its disk mounted?")
    }

    private func isRoot(_ folder: OpenFolder, as known: Facts) throws(SystemError) -> Bool {
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.root.status")
        let unmountCount = watcher.unmountCount
        let isSameMount =
            status.device == known.device && !known.isDoubted && unmountCount == known.unmountCount
        if isSameMount && known.knowsByPlace { return true }
        if !isSameMount, try !isSameFileSystem(folder, status, as: known) { return false }
        if !known.knowsByPlace, try ownIdentity([], in: folder.number, status: status) != known.own
        {
            return false
        }
        if isSameMount { return true }
        state.withLock { state in
            state.facts?.device = status.device
            state.facts?.mount = status.mount
            state.facts?.isDoubted = false
            state.facts?.unmountCount = unmountCount
            state.deviceTexts = [:]
        }
        mounts.forgetNumbers()
        return true
    }

    /// A disk that was taken out and put back may have another number, and another disk its number;
    /// the root of every ext4 has the same handle, and of file systems without lasting names only
    /// our own record tells.
    private func isSameFileSystem(_ folder: OpenFolder, _ status: FileStatus, as known: Facts)
        throws(SystemError) -> Bool
    {
        if known.knowsByPlace {
            return try (records.record(in: folder)?.identity ?? FolderRecord.noIdentity)
                == known.own
        }
        if known.fileSystem == 0 { return status.device == known.device }
        return try FileSystemFacts.of(descriptor: folder.number, label: "folder.root.facts")
            .identity == known.fileSystem
    }

    private func learnRoot(_ folder: OpenFolder) throws(SystemError) {
        let status = try FileStatus.of(descriptor: folder.number, label: "folder.root.status")
        let facts = try FileSystemFacts.of(descriptor: folder.number, label: "folder.root.facts")
        if facts.forgetsWhichFileIsWhich { return try learnRootOfPlaces(folder, status, facts) }
        let own = try ownIdentity([], in: folder.number, status: status)
        var hasAttributes = true
        do throws(SystemError) {
            _ = try attribute(
                IdentityMark.attribute, of: [0x2E], in: folder.number,
                label: "folder.root.attribute")
        } catch {
            hasAttributes = false
            logger.notice(
                """
                the folder has no extended attributes: \
                identifiers change when content is replaced
                """,
                metadata: ["provider": "\(name)", "errno": "\(error.errno)"])
        }
        watcher.begin(root: ItemIdentifier(own), isShared: facts.isShared)
        let root = Facts(
            own: own, device: status.device, mount: status.mount, fileSystem: facts.identity,
            hasAttributes: hasAttributes, isShared: facts.isShared)
        state.withLock { if $0.facts == nil { $0.facts = root } }
    }

    private func learnRootOfPlaces(
        _ folder: OpenFolder, _ status: FileStatus, _ facts: FileSystemFacts
    ) throws(SystemError) {
        let record = try records.knownOrNew(folder, type: facts.type)
        let root = Facts(
            own: record?.identity ?? FolderRecord.noIdentity, device: status.device,
            fileSystem: facts.identity,
            hasAttributes: false, isShared: facts.isShared, knowsByPlace: true,
            traits: record?.traits(of: facts.type) ?? FolderTraits())
        watcher.begin(root: root.identifier, isShared: facts.isShared)
        let isFirst = state.withLock { state in
            defer { if state.facts == nil { state.facts = root } }
            return state.facts == nil
        }
        guard isFirst else { return }
        let escaped = root.traits.escapes.map { $0.names.joined(separator: ", ") }
        logger.notice(
            """
            the folder's file system has no lasting names for files: \
            an item is what is at its place
            """,
            metadata: ["provider": "\(name)", "escaped": "\(escaped ?? "nothing")"])
    }

    // MARK: Who a file of it is

    /// The handle of an entry, or of an open file when `name` is empty.
    func ownIdentity(_ name: [UInt8], in folder: CInt, status: FileStatus) throws(SystemError)
        -> String
    {
        var own: String
        if let handle = fileHandleText(of: name, in: folder) {
            own = handle
        } else {
            // No handles here: an inode number is given to another file later, but not with the
            // same time of birth.
            own =
                String(status.inode, radix: 16) + "-" + String(status.birthTime.rawValue, radix: 16)
        }
        guard let root = knownFacts else { return own }
        let isRoots = root.device == status.device
        if !isRoots { own += try "@" + deviceText(status.device, name: name, in: folder) }
        return status.mount == root.mount
            ? own : own + mounts.text(of: status.mount, isRoots: isRoots)
    }

    /// Tells file systems mounted inside the folder apart; device numbers change from boot to boot.
    private func deviceText(_ device: UInt64, name: [UInt8], in folder: CInt) throws(SystemError)
        -> String
    {
        if let known = state.withLock({ $0.deviceTexts[device] }) { return known }
        let facts: FileSystemFacts
        if name.isEmpty {
            facts = try FileSystemFacts.of(descriptor: folder, label: "folder.device.facts")
        } else {
            let entry = try Descriptor.open(
                name, in: folder, flags: openPathOnly | O_NOFOLLOW, label: "folder.device.open")
            facts = try FileSystemFacts.of(descriptor: entry.number, label: "folder.device.facts")
        }
        let text = String(facts.identity == 0 ? device : facts.identity, radix: 16)
        state.withLock { $0.deviceTexts[device] = text }
        return text
    }

    /// Only a store that something was uploaded to has marks; asking each file for one costs a
    /// call.
    func readsMarks(_ root: OpenFolder) -> Bool {
        let (hasAttributes, hasStore) = state.withLock {
            ($0.facts?.hasAttributes ?? false, $0.hasStore)
        }
        guard hasAttributes else { return false }
        if hasStore { return true }
        // A missing folder is the ordinary answer here and any error comes again at the files
        // themselves.
        guard
            (try? FileStatus.of(ReservedName.folder, in: root.number, label: "folder.store.status"))
                != nil
        else {
            return false
        }
        noteStore()
        return true
    }
}
