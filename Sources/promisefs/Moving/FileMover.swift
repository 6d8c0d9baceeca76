import Glibc
import PromiseCore
import PromiseSystem

/// Moves files between a disk and a mount, or between two mounts, so that there is no moment at
/// which a crash loses one: it goes only when the other is whole on the disk under its name.
///
/// Blocks. What was moved before something failed stays moved, and the same call goes on with the
/// rest.
struct FileMover {
    /// `isOfOne`: the item stays, and others can go.
    private struct Trouble: Error {
        var failure: CommandFailure
        var isOfOne: Bool
    }

    /// Of what an editor writes: it stays on this machine until it has its name.
    private static let draftMark = Array(".goutputstream-promisefs-move-".utf8)

    private static let errorsOfOne: Set<CInt> = [
        EACCES, EAGAIN, EBUSY, EEXIST, EFBIG, EINVAL, EIO, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY,
        EOPNOTSUPP, EPERM, ESTALE, ETXTBSY,
    ]

    /// Files and links that were moved.
    private(set) var count = 0
    private(set) var byteCount: UInt64 = 0
    /// Why items stay.
    private(set) var failures: [CommandFailure] = []
    /// The source stays.
    var isCopy = false

    // MARK: Moving

    /// Goes on with other items where one cannot be moved, and notes why.
    mutating func move(_ source: [UInt8], to target: [UInt8]) throws(CommandFailure) {
        if let status = try? FileStatus.of(source, label: "move.look"), status.kind == .folder,
            MoveCheck.isInside(target, status)
        {
            let sentence = "'\(escapedForDisplay(source))' cannot be \(isCopy ? "copied" : "moved") into itself"
            failures.append(CommandFailure(sentence))
            return
        }
        do throws(Trouble) { try moveOrLeave(source, to: target) } catch { throw error.failure }
    }

    private mutating func moveOrLeave(_ source: [UInt8], to target: [UInt8]) throws(Trouble) {
        do throws(Trouble) {
            try moveItem(source, to: target)
        } catch {
            guard error.isOfOne else { throw error }
            failures.append(error.failure)
        }
    }

    private mutating func moveItem(_ source: [UInt8], to target: [UInt8]) throws(Trouble) {
        if !isCopy {
            if try renamed(source, to: target) { return }
            try checkMayGo(source)
        }
        let status = try look(at: source)
        if MoveCheck.isOne(source, status, target) {
            let sentence = "'\(escapedForDisplay(source))' is there already"
            throw Trouble(failure: CommandFailure(sentence), isOfOne: true)
        }
        switch status.kind {
        case .folder: try moveFolder(source, status, to: target)
        case .link: try moveLink(source, status, to: target)
        case .file: try moveFile(source, status, to: target)
        default:
            let sentence = "'\(escapedForDisplay(source))' is no file, folder or link, and stays"
            throw Trouble(failure: CommandFailure(sentence), isOfOne: true)
        }
    }

    /// What cannot be taken away where it is need not be copied first.
    private func checkMayGo(_ source: [UInt8]) throws(Trouble) {
        let folder = FileMover.folder(of: source)
        guard withCPath(folder, { access($0, W_OK) }) != 0, errno == EROFS || errno == EACCES else { return }
        throw problem(source, "cannot be moved", SystemError(errno: errno, label: "move.access"))
    }

    /// Where both are on one file system nothing needs to be copied.
    private mutating func renamed(
        _ source: [UInt8], to target: [UInt8]
    ) throws(Trouble) -> Bool {
        do throws(SystemError) {
            try PromiseSystem.rename(source, to: target, flags: .noReplace, label: "move.rename")
            count += 1
            return true
        } catch {
            // A folder that is there already is what an earlier call had made.
            if error.errno == EXDEV || error.errno == EEXIST || error.errno == EINVAL { return false }
            throw problem(source, "cannot be moved", error)
        }
    }

    private mutating func moveFolder(
        _ source: [UInt8], _ status: FileStatus, to target: [UInt8]
    ) throws(Trouble) {
        do throws(SystemError) {
            try makeFolder(target, mode: 0o700, label: "move.folder")
        } catch {
            let there = try? FileStatus.of(target, label: "move.look")
            guard error.errno == EEXIST, there?.kind == .folder else {
                throw problem(target, "cannot be made", error)
            }
            // What a call that was killed has left. Whose it is if it is not fails and keeps its source.
            for name in try names(in: target) where name.starts(with: FileMover.draftMark) {
                try? unlink(target + [0x2F] + name, label: "move.leftover")
            }
            // The mark would keep here what others put there. An empty one may be a killed call's.
            if MoveCheck.wouldMark(target, from: source), try !names(in: target).isEmpty {
                let shown = escapedForDisplay(source)
                let sentence = "'\(shown)' is to stay on this machine here, and not there"
                throw Trouble(failure: CommandFailure(sentence), isOfOne: true)
            }
        }
        try keepMark(of: source, at: target)
        let failuresBefore = failures.count
        for name in try names(in: source) {
            try moveOrLeave(source + [0x2F] + name, to: target + [0x2F] + name)
            // What goes from it changes its time, and whoever goes on after a kill takes that from here.
            if !isCopy {
                try? setTimes(
                    of: source, access: status.accessTime, modification: status.modificationTime, label: "move.folderTimes")
            }
        }
        let isWhole = failures.count == failuresBefore
        try finish(status, of: source, at: target, isWhole: isWhole)
        if isCopy || !isWhole { return }
        do throws(SystemError) {
            try unlink(source, isFolder: true, label: "move.rmdir")
        } catch {
            throw problem(source, "cannot be removed; all that was in it is moved", error)
        }
    }

    /// What is to stay on this machine would be sent if the folder were told of it afterwards.
    private func keepMark(of source: [UInt8], at target: [UInt8]) throws(Trouble) {
        do throws(SystemError) {
            let from = try FileMover.opened(source)
            guard try MoveCheck.isMarked(from) else { return }
            let to = try FileMover.opened(target)
            let name: StaticString = "user.promisefs.excluded"
            try setAttribute(name, to: MoveCheck.mark, of: to.number, label: "move.keepMark")
        } catch {
            // Where no attributes are kept there is no such mark, and nothing is sent from there.
            if error.errno != EOPNOTSUPP { throw problem(source, "cannot be kept on this machine", error) }
        }
    }

    private mutating func moveLink(
        _ source: [UInt8], _ status: FileStatus, to target: [UInt8]
    ) throws(Trouble) {
        do throws(SystemError) {
            let text = try readLink(source, label: "move.readlink")
            if let known = try? readLink(target, label: "move.readlink") {
                guard known == text else { throw SystemError(errno: EEXIST, label: "move.link") }
            } else {
                try makeLink(text, at: target, stays: linkStays(source, label: "move.linkMark"))
            }
            // Only the superuser gives links away. They have no mode of their own.
            if geteuid() == 0 {
                _ = withCPath(target) { lchown($0, status.owner, status.group) }
            }
            try setTimes(
                of: target, access: status.accessTime, modification: status.modificationTime,
                label: "move.times")
            try synchronizeFolder(of: target)
            count += 1
            if !isCopy { try unlink(source, label: "move.unlink") }
        } catch {
            throw problem(source, "cannot be moved", error)
        }
    }

    /// One that is to stay on this machine has its name only when it is marked: it would be sent before.
    private func makeLink(_ text: [UInt8], at target: [UInt8], stays: Bool) throws(SystemError) {
        let path = stays ? FileMover.draft(of: target) : target
        let result = withCPath(text) { text in withCPath(path) { symlink(text, $0) } }
        if result != 0 { throw SystemError(errno: errno, label: "move.link") }
        guard stays else { return }
        do throws(SystemError) {
            try keepLink(path, label: "move.keepLink")
            try PromiseSystem.rename(path, to: target, flags: .noReplace, label: "move.linkName")
        } catch {
            try? unlink(path, label: "move.linkDraft")
            throw error
        }
    }

    private mutating func moveFile(
        _ source: [UInt8], _ status: FileStatus, to target: [UInt8]
    ) throws(Trouble) {
        do throws(SystemError) {
            let file = try Descriptor.open(
                source, flags: O_RDONLY | O_NOFOLLOW, label: "move.open")
            if (try? FileStatus.of(target, label: "move.look")) != nil {
                // What a call that was cut off had copied is looked at, byte for byte.
                guard try isSame(file, target) else {
                    throw SystemError(errno: EEXIST, label: "move.target")
                }
                // It may not have come to the disk, nor its name: nobody knows who put it there.
                if !isCopy { try synchronizeFile(target) }
            } else {
                try copy(file, status, to: target)
            }
            let now = try FileStatus.of(source, label: "move.look")
            guard now.size == status.size, now.modificationTime == status.modificationTime,
                now.inode == status.inode
            else {
                throw SystemError(errno: ESTALE, label: "move.source")
            }
            count += 1
            byteCount += status.size
            if !isCopy { try unlink(source, label: "move.unlink") }
        } catch {
            throw problem(source, "cannot be moved", error)
        }
    }

    // MARK: Copying

    /// Under its own name there is never half of it, and nothing is left of a copy that is cut off.
    private func copy(
        _ file: borrowing Descriptor, _ status: FileStatus, to target: [UInt8]
    ) throws(SystemError) {
        let copy: Descriptor
        do throws(SystemError) {
            copy = try openNameless(
                in: FileMover.folder(of: target), mode: 0o600, label: "move.nameless")
        } catch {
            guard [EOPNOTSUPP, EISDIR, ENOENT, EINVAL].contains(error.errno) else { throw error }
            return try copyByDraft(file, status, to: target)
        }
        try fill(copy, from: file, status)
        try giveName(target, to: copy.number, label: "move.name")
        try synchronizeFolder(of: target)
    }

    /// Where the file system has no files without a name.
    private func copyByDraft(
        _ file: borrowing Descriptor, _ status: FileStatus, to target: [UInt8]
    ) throws(SystemError) {
        let draft = FileMover.draft(of: target)
        do throws(SystemError) {
            let copy = try Descriptor.open(
                draft, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600,
                label: "move.create")
            try fill(copy, from: file, status)
            try PromiseSystem.rename(
                draft, to: target, flags: .noReplace, label: "move.name")
            try synchronizeFolder(of: target)
        } catch {
            try? unlink(draft, label: "move.draft")
            throw error
        }
    }

    private func fill(
        _ copy: borrowing Descriptor, from file: borrowing Descriptor, _ status: FileStatus
    ) throws(SystemError) {
        // A hole at its end makes no file longer.
        try truncate(copy.number, to: status.size, label: "move.size")
        let done = try copyKeepingHoles(
            from: file.number, at: 0, to: copy.number, at: 0, count: status.size,
            label: "move.copy")
        // Before it has its name: the same call is to go on with it.
        let now = try FileStatus.of(descriptor: file.number, label: "move.look")
        guard done == status.size, now.size == status.size, now.modificationTime == status.modificationTime else {
            throw SystemError(errno: EAGAIN, label: "move.copy")
        }
        try copyAttributes(from: file.number, to: copy.number, label: "move.attributes")
        try dress(copy.number, from: file.number, as: status)
        try synchronize(copy.number, dataOnly: false, label: "move.fsync")
    }

    private func dress(
        _ descriptor: CInt, from source: CInt, as status: FileStatus, besides bits: mode_t = 0
    ) throws(SystemError) {
        // Only the superuser gives files away.
        if geteuid() == 0 { _ = fchown(descriptor, status.owner, status.group) }
        let hasAccess = try copyAccess(
            from: source, to: descriptor, isFolder: status.kind == .folder, label: "move.accessList")
        // With a list these bits are the most that it gives to anybody; without it they are the group's.
        let permissions = hasAccess ? status.permissions : status.permissions & ~S_IRWXG
        if fchmod(descriptor, permissions | bits) != 0 {
            throw SystemError(errno: errno, label: "move.mode")
        }
        try setTimes(
            descriptor, access: status.accessTime, modification: status.modificationTime,
            label: "move.times")
    }

    /// `isWhole`: all of it is there. Else the same call made again is to put the rest there, whatever the mode forbids.
    private func finish(
        _ status: FileStatus, of source: [UInt8], at target: [UInt8], isWhole: Bool
    ) throws(Trouble) {
        do throws(SystemError) {
            let from = try FileMover.opened(source)
            let to = try FileMover.opened(target)
            try copyAttributes(from: from.number, to: to.number, label: "move.attributes")
            try dress(to.number, from: from.number, as: status, besides: isWhole ? 0 : S_IRWXU)
            try synchronize(to.number, dataOnly: false, label: "move.fsync")
        } catch {
            throw problem(target, "does not get the attributes of its folder", error)
        }
    }

    private func isSame(
        _ file: borrowing Descriptor, _ path: [UInt8]
    ) throws(SystemError) -> Bool {
        let other = try Descriptor.open(path, flags: O_RDONLY | O_NOFOLLOW, label: "move.compare")
        let size = try FileStatus.of(descriptor: file.number, label: "move.compare").size
        guard try FileStatus.of(descriptor: other.number, label: "move.compare").size == size else {
            return false
        }
        var left = [UInt8](repeating: 0, count: 1 << 16)
        var right = left
        var offset: UInt64 = 0
        let numbers = (file.number, other.number)
        while offset < size {
            let one = left.withUnsafeMutableBytes { buffer in
                try? readFully(numbers.0, into: buffer, at: offset, label: "move.compare")
            }
            let two = right.withUnsafeMutableBytes { buffer in
                try? readFully(numbers.1, into: buffer, at: offset, label: "move.compare")
            }
            guard let one, let two else { throw SystemError(errno: EIO, label: "move.compare") }
            guard one == two, one > 0, left[..<one] == right[..<two] else { return false }
            offset += UInt64(one)
        }
        return true
    }

    // MARK: Looking

    private func look(at path: [UInt8]) throws(Trouble) -> FileStatus {
        do throws(SystemError) {
            return try FileStatus.of(path, label: "move.look")
        } catch {
            throw problem(path, "cannot be moved", error)
        }
    }

    private func names(in folder: [UInt8]) throws(Trouble) -> [[UInt8]] {
        do throws(SystemError) {
            return try listFolder(try FileMover.opened(folder), label: "move.list").map(\.name)
        } catch {
            throw problem(folder, "cannot be listed", error)
        }
    }

    private static func opened(_ folder: [UInt8]) throws(SystemError) -> Descriptor {
        try Descriptor.open(
            folder, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, label: "move.opendir")
    }

    private func synchronizeFile(_ path: [UInt8]) throws(SystemError) {
        let file = try Descriptor.open(path, flags: O_RDONLY | O_NOFOLLOW, label: "move.opened")
        try synchronize(file.number, dataOnly: false, label: "move.fsync")
        try synchronizeFolder(of: path)
    }

    private func synchronizeFolder(of path: [UInt8]) throws(SystemError) {
        let folder = try FileMover.opened(FileMover.folder(of: path))
        try synchronize(folder.number, dataOnly: false, label: "move.fsync")
    }

    static func folder(of path: [UInt8]) -> [UInt8] {
        guard let slash = path.lastIndex(of: 0x2F) else { return [0x2E] }
        return slash == 0 ? [0x2F] : Array(path[..<slash])
    }

    private static func draft(of target: [UInt8]) -> [UInt8] {
        let number = String(UInt64.random(in: 0 ... .max), radix: 36)
        return folder(of: target) + [0x2F] + draftMark + Array(number.utf8)
    }

    private func problem(_ path: [UInt8], _ what: String, _ error: SystemError) -> Trouble {
        let reason =
            switch error.errno {
            case EEXIST: "there is something else at its place already"
            case EAGAIN: "it was changed meanwhile, and stays"
            case ESTALE: "it was changed meanwhile; both stay"
            default: error.reason
            }
        let status =
            switch error.errno {
            case ENETDOWN, ENETUNREACH, EHOSTDOWN, ETIMEDOUT: ExitStatus.offline
            case EACCES, EPERM, EROFS: ExitStatus.refused
            default: ExitStatus.failed
            }
        return Trouble(
            failure: CommandFailure("'\(escapedForDisplay(path))' \(what): \(reason)", exitStatus: status),
            isOfOne: FileMover.errorsOfOne.contains(error.errno))
    }
}
