import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Sets modes, owners and times, as far as the file system keeps them and this user may.
struct FolderMetadata: Sendable {
    let root: FolderRoot
    let writable: WritableFolders
    /// For tests: called between the last check of a conditional write and its taking effect.
    let beforeTakingEffect: (@Sendable () -> Void)?

    /// What new content of an item is to have. Rights that are to be kept are those of this moment.
    func wanted(_ changes: ItemChanges, of located: LocatedItem) throws(ProviderError) -> Metadata {
        guard changes.keepsRights else {
            return changes.metadata ?? located.entry.status.metadata
        }
        let now = try mapped("'\(display(located.path))' cannot be looked at") {
            () throws(SystemError) in
            let flags = openPathOnly | O_NOFOLLOW
            let file = try Descriptor.open(
                located.entry.name, in: located.folder.number, flags: flags,
                label: "folder.rights.open")
            return try FileStatus.of(descriptor: file.number, label: "folder.rights.status")
        }
        return changes.metadata(over: now.metadata, isContentNew: true) ?? now.metadata
    }

    /// Throws `.conflict` when it is not what was looked at any more, or of a file when others have
    /// written to it since: the time that belongs to the old bytes would hide theirs.
    func set(_ changes: ItemChanges, of located: LocatedItem) throws(ProviderError) -> LocatedItem {
        let status = located.entry.status
        let name = located.entry.name
        beforeTakingEffect?()
        return try mapped("'\(display(located.path))' cannot be changed") {
            () throws(SystemError) in
            let flags = openPathOnly | O_NOFOLLOW
            let file = try Descriptor.open(
                name, in: located.folder.number, flags: flags, label: "folder.metadata.open")
            let now = try FileStatus.of(descriptor: file.number, label: "folder.metadata.status")
            guard
                try root.ownIdentity([], in: file.number, status: now) == located.entry.identity.own
            else {
                throw SystemError(errno: EEXIST, label: "folder.metadata.open")
            }
            guard let metadata = changes.metadata(over: now.metadata) else { return located }
            let isTimed = now.modificationTime == status.modificationTime
            guard status.kind != .file || isTimed && now.size == status.size else {
                throw SystemError(errno: EEXIST, label: "folder.metadata.changed")
            }
            if status.kind == .link {
                if !root.kept.contains(.linkMetadata) { return located }
                try setOwner(metadata, of: [], in: file.number)
                let time = metadata.modificationTime
                try setTimes(
                    of: name, in: located.folder.number, access: accessTime(with: time),
                    modification: time,
                    label: "folder.metadata.times")
            } else {
                try set(metadata, of: file.number, current: now)
            }
            var result = located
            result.entry.status = try FileStatus.of(
                descriptor: file.number, label: "folder.metadata.status")
            // What came while the time was set has that time: its size tells of it.
            guard status.kind != .file || result.entry.status.size == now.size else {
                throw SystemError(errno: EEXIST, label: "folder.metadata.changed")
            }
            return result
        }
    }

    /// Of a file or folder held by an O_PATH descriptor. What is as it shall be is not touched, so
    /// that no event is raised.
    func set(_ metadata: Metadata, of file: CInt, current: FileStatus?) throws(SystemError) {
        if current?.owner != metadata.owner || current?.group != metadata.group {
            try setOwner(metadata, of: [], in: file)
        }
        writable.gave(metadata.mode, to: file)
        try withCPath(descriptorPath(file)) { path throws(SystemError) in
            // The owner may have taken set-id bits with it, so an unchanged mode is set again for
            // root.
            if current?.permissions != metadata.mode || geteuid() == 0 {
                try ignoringRefusal { () throws(SystemError) in
                    _ = try call("folder.metadata.mode") { chmod(path, metadata.mode & 0o7777) }
                }
            }
            guard current?.modificationTime != metadata.modificationTime else { return }
            let modified = metadata.modificationTime
            let time = timespec(tv_sec: modified.seconds, tv_nsec: modified.nanosecondPart)
            let omitted = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
            let times = [accessTime(with: modified) == nil ? omitted : time, time]
            _ = try call("folder.metadata.times") { utimensat(AT_FDCWD, path, times, 0) }
        }
    }

    /// Of a file open for writing. The owner first: changing it takes set-id bits away.
    func setOfUpload(_ metadata: Metadata, of file: CInt, keepsTime: Bool) throws(SystemError) {
        try setOwner(metadata, of: [], in: file)
        try ignoringRefusal { () throws(SystemError) in
            _ = try call("folder.upload.mode") { fchmod(file, metadata.mode & 0o7777) }
        }
        if keepsTime {
            let time = metadata.modificationTime
            try setTimes(
                file, access: accessTime(with: time), modification: time,
                label: "folder.upload.times")
        }
    }

    /// FUSE programs of libfuse 2 leave a file's times alone where only one of the two is to be
    /// set.
    func accessTime(with modificationTime: Timestamp) -> Timestamp? {
        root.knowsByPlace ? modificationTime : nil
    }

    /// Of an entry, or of the descriptor itself when `name` is empty. Only root gives files away.
    func setOwner(_ metadata: Metadata, of name: [UInt8], in folder: CInt) throws(SystemError) {
        guard geteuid() == 0 else { return }
        let emptyPath: CInt = 0x1000
        try ignoringRefusal { () throws(SystemError) in
            _ = try withCPath(name) { name throws(SystemError) in
                try call("folder.owner") {
                    fchownat(
                        folder, name, metadata.owner, metadata.group,
                        emptyPath | AT_SYMLINK_NOFOLLOW)
                }
            }
        }
    }

    /// What a file system without owners or modes (or another user's file) refuses is left as it
    /// is.
    func ignoringRefusal(_ body: () throws(SystemError) -> Void) throws(SystemError) {
        do throws(SystemError) {
            try body()
        } catch {
            guard [EPERM, EOPNOTSUPP, ENOSYS, EROFS].contains(error.errno) else { throw error }
        }
    }
}
