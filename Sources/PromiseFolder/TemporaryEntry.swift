import Glibc
import Logging
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

// New content is complete and on the disk under a hidden name before it takes a visible one.

/// A file or link under a hidden name, ready to take its place.
struct TemporaryEntry: Sendable {
    var folder: OpenFolder
    var name: [UInt8]
    /// As it was when everything was set; a rename changes none of it.
    var entry: FolderEntry
}

extension FolderProvider {
    /// Where temporary files go.
    enum TemporaryPlace {
        /// `.promisefs/uploads`: nobody sees them.
        case store
        /// Hidden beside their target, which is on another file system than the root.
        case beside
    }

    /// The hidden folder for temporary files; made, with the root's permissions, when it is first needed.
    func openUploads() throws(ProviderError) -> OpenFolder { try openHidden(ReservedName.uploads) }

    /// A folder in `.promisefs`.
    func openHidden(_ name: [UInt8]) throws(ProviderError) -> OpenFolder {
        let root = try openRoot()
        let shown = "\(displayPath)/.promisefs/\(escapedForDisplay(name))"
        return try mapped("'\(shown)' cannot be used: check its permissions") { () throws(SystemError) in
            let store = try openOrMake(ReservedName.folder, in: root)
            let folder = try openOrMake(name, in: store)
            shared.withLock { $0.hasStore = true }
            return folder
        }
    }

    func openOrMake(_ name: [UInt8], in folder: OpenFolder) throws(SystemError) -> OpenFolder {
        do throws(SystemError) {
            return try folder.open(name)
        } catch {
            guard error.errno == ENOENT else { throw error }
        }
        let permissions = try FileStatus.of(descriptor: folder.number, label: "folder.store.status").permissions & 0o777
        do throws(SystemError) {
            try makeFolder(name, in: folder.number, label: "folder.store.make")
            // Whoever may change the root may upload; the process's mask would take that away.
            _ = try withCPath(name) { name throws(SystemError) in
                try call("folder.store.mode") { fchmodat(folder.number, name, permissions, 0) }
            }
        } catch {
            guard error.errno == EEXIST else { throw error }
        }
        return try folder.open(name)
    }

    /// A rename from the store reaches `folder` only on the same mount of the same file system. The kernel compares mounts
    /// before it looks for names (renameat2(2), EXDEV), so asking for a name that is not there tells.
    func temporaryPlace(for folder: OpenFolder, device: UInt64) throws(ProviderError) -> TemporaryPlace {
        let uploads = try openUploads()
        guard device == rootFacts.device else { return .beside }
        let name = temporaryName(.store)
        do throws(SystemError) {
            try rename(name, in: uploads.number, to: name, in: folder.number, label: "folder.upload.probe")
        } catch {
            if error.errno == EXDEV { return .beside }
        }
        return .store
    }

    func temporaryName(_ place: TemporaryPlace) -> [UInt8] {
        let count = shared.withLock { shared in
            shared.temporaryCount += 1
            return shared.temporaryCount
        }
        let text = Array("\(instance)-\(count)".utf8)
        return place == .store ? text : ReservedName.uploadPrefix + text
    }

    /// Writes a file under a hidden name. It has its content, attributes and mark, and is on the disk, when this returns.
    /// `old` is what it is to replace, whose identifier goes on; nil for a new item.
    func writeTemporaryFile(
        _ contents: any ContentSource, metadata: Metadata, keepsTime: Bool, replacing old: FolderEntry?, for target: OpenFolder,
        place: TemporaryPlace, flag: CancellationFlag
    ) throws(ProviderError) -> TemporaryEntry {
        let folder = place == .store ? try openUploads() : target
        let name = temporaryName(place)
        let file = try mapped("a temporary file cannot be made") { () throws(SystemError) in
            try Descriptor.open(
                name, in: folder.number, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, label: "folder.upload.open")
        }
        do throws(ProviderError) {
            try copy(contents, to: file.number, flag: flag)
            return try mapped("the upload cannot be finished") { () throws(SystemError) in
                try setMetadata(metadata, of: file.number, keepsTime: keepsTime)
                var status = try FileStatus.of(descriptor: file.number, label: "folder.upload.status")
                if let old, !old.identity.isLasting, old.version == FolderEntry.version(status, nil, target: nil) {
                    try makeLater(&status, of: file.number)
                }
                let own = try ownIdentity([], in: file.number, status: status)
                var base = own
                if let old, try mark(file.number, identifier: old.identifier, own: own) { base = old.identifier.rawValue }
                if isDurable { try synchronize(file.number, dataOnly: false, label: "folder.upload.sync") }
                let entry = described(name, FileName(trusted: name), status, own: own, base: base)
                return TemporaryEntry(folder: folder, name: name, entry: entry)
            }
        } catch {
            remove(name, in: folder)
            throw error
        }
    }

    /// Where size and time are all that tells two contents apart, they must differ. FAT's time has steps of two seconds.
    private func makeLater(_ status: inout FileStatus, of file: CInt) throws(SystemError) {
        let time = status.modificationTime.advanced(by: .seconds(2))
        try setTimes(file, access: time, modification: time, label: "folder.upload.later")
        status = try FileStatus.of(descriptor: file, label: "folder.upload.status")
    }

    /// Makes a link under a hidden name. Links have no attributes of their own, so a replaced one gets a new identifier.
    func makeTemporaryLink(
        _ target: [UInt8], metadata: Metadata?, for folder: OpenFolder, place: TemporaryPlace
    ) throws(ProviderError) -> TemporaryEntry {
        let folder = place == .store ? try openUploads() : folder
        let name = temporaryName(place)
        guard !target.isEmpty, !target.contains(0) else { throw ProviderError(.refused, "a link leads somewhere") }
        guard kept.contains(.links) else {
            throw ProviderError(.refused, "the link cannot be made: the folder's file system has no links")
        }
        do throws(ProviderError) {
            return try mapped("the link cannot be made") { () throws(SystemError) in
                _ = try withCPath(stored(target: target)) { target throws(SystemError) in
                    try withCPath(name) { name throws(SystemError) in
                        try call("folder.link.make") { symlinkat(target, folder.number, name) }
                    }
                }
                if let metadata, kept.contains(.linkMetadata) {
                    try setOwner(metadata, of: name, in: folder.number)
                    let time = metadata.modificationTime
                    try setTimes(
                        of: name, in: folder.number, access: accessTime(with: time), modification: time,
                        label: "folder.link.times")
                }
                guard let made = try entry(name, in: folder.number, parent: "", readsMarks: false) else {
                    throw SystemError(errno: EPERM, label: "folder.link.check")
                }
                return TemporaryEntry(folder: folder, name: name, entry: made)
            }
        } catch {
            remove(name, in: folder)
            throw error
        }
    }

    /// Copies what the source holds; what is a hole there stays one.
    private func copy(_ contents: any ContentSource, to target: CInt, flag: CancellationFlag) throws(ProviderError) {
        guard contents.size > 0 else { return }
        let isComplete = try mapped("the upload failed") { () throws(SystemError) -> Result<Bool, ProviderError> in
            let isCloned = clone(contents.descriptor, to: target)
            // What is missing at the end would look like a hole.
            let found = try FileStatus.of(descriptor: contents.descriptor, label: "folder.upload.sourceSize").size
            guard found >= contents.size else { return Result<Bool, ProviderError>.success(false) }
            if isCloned {
                try truncate(target, to: contents.size, label: "folder.upload.size")
                return Result<Bool, ProviderError>.success(true)
            }
            var position: UInt64 = 0
            while position < contents.size {
                let data = nextData(in: contents.descriptor, from: position, to: contents.size)
                position = data.lower
                while position < data.upper {
                    do throws(ProviderError) { try flag.check() } catch { return Result<Bool, ProviderError>.failure(error) }
                    let count = min(data.upper - position, 16 << 20)
                    let copied = try copyBytes(
                        from: contents.descriptor, at: position, to: target, at: position, count: count,
                        label: "folder.upload.copy")
                    guard copied == count else { return Result<Bool, ProviderError>.success(false) }
                    position += count
                    contents.noteSent(count)
                }
            }
            try truncate(target, to: contents.size, label: "folder.upload.size")
            return Result<Bool, ProviderError>.success(true)
        }
        guard try isComplete.get() else { throw ProviderError(.sourceChanged, "the file became shorter while it was sent") }
    }

    /// False where the file system takes no attributes.
    private func mark(_ file: CInt, identifier: ItemIdentifier, own: String) throws(SystemError) -> Bool {
        guard shared.withLock({ $0.root?.hasAttributes ?? false }) else { return false }
        do throws(SystemError) {
            let value = IdentityMark.value(identifier: identifier, own: own)
            try setAttribute(IdentityMark.attribute, to: value, of: file, label: "folder.upload.mark")
            return true
        } catch {
            guard error.errno == EOPNOTSUPP || error.errno == EPERM || error.errno == EACCES else { throw error }
            return false
        }
    }

    /// Of a file open for writing. The owner first: changing it takes set-id bits away.
    private func setMetadata(_ metadata: Metadata, of file: CInt, keepsTime: Bool) throws(SystemError) {
        try setOwner(metadata, of: [], in: file)
        try ignoringRefusal { () throws(SystemError) in
            _ = try call("folder.upload.mode") { fchmod(file, metadata.mode & 0o7777) }
        }
        if keepsTime {
            let time = metadata.modificationTime
            try setTimes(file, access: accessTime(with: time), modification: time, label: "folder.upload.times")
        }
    }

    /// FUSE programs of libfuse 2 leave a file's times alone where only one of the two is to be set.
    func accessTime(with modificationTime: Timestamp) -> Timestamp? { knowsByPlace ? modificationTime : nil }

    /// Of an entry, or of the descriptor itself when `name` is empty. Only root gives files away.
    func setOwner(_ metadata: Metadata, of name: [UInt8], in folder: CInt) throws(SystemError) {
        guard geteuid() == 0 else { return }
        let emptyPath: CInt = 0x1000
        try ignoringRefusal { () throws(SystemError) in
            _ = try withCPath(name) { name throws(SystemError) in
                try call("folder.owner") {
                    fchownat(folder, name, metadata.owner, metadata.group, emptyPath | AT_SYMLINK_NOFOLLOW)
                }
            }
        }
    }

    /// What a file system without owners or modes (or another user's file) refuses is left as it is.
    func ignoringRefusal(_ body: () throws(SystemError) -> Void) throws(SystemError) {
        do throws(SystemError) {
            try body()
        } catch {
            guard [EPERM, EOPNOTSUPP, ENOSYS, EROFS].contains(error.errno) else { throw error }
        }
    }

    /// Removes a temporary entry; what cannot be removed now goes at a later start.
    func remove(_ name: [UInt8], in folder: OpenFolder) {
        do throws(SystemError) {
            try unlink(name, in: folder.number, label: "folder.upload.remove")
        } catch {
            if error.errno != ENOENT { logger.info("a temporary file was left behind", metadata: ["errno": "\(error.errno)"]) }
        }
    }

    /// Removes what a crash left in the store a day ago or earlier.
    func removeOldUploads(_ root: OpenFolder) {
        do throws(SystemError) {
            let uploads = try root.open(ReservedName.folder).open(ReservedName.uploads)
            shared.withLock { $0.hasStore = true }
            try removeOld(in: uploads) { _ in true }
        } catch {
            if error.errno != ENOENT { logger.notice("old temporary files stay", metadata: ["errno": "\(error.errno)"]) }
        }
    }

    /// Removes temporary files beside items that a crash left.
    func removeOldUploads(beside folder: OpenFolder) throws(SystemError) {
        try removeOld(in: folder) { $0.starts(with: ReservedName.uploadPrefix) }
    }

    private func removeOld(in folder: OpenFolder, where isOurs: ([UInt8]) -> Bool) throws(SystemError) {
        let limit = clock.now().advanced(by: .seconds(-86_400))
        for (name, _) in try listFolder(try folder.openForReading(), label: "folder.clean.list") where isOurs(name) {
            // The time of the last change of the inode: the modification time is the user's.
            guard let status = try? FileStatus.of(name, in: folder.number, label: "folder.clean.status"),
                status.kind != .folder, status.changeTime < limit
            else { continue }
            remove(name, in: folder)
        }
    }
}
