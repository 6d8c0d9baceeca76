import CFuse
import CFuseTransport
import Glibc
import PromiseCore
import PromiseSystem

/// The folder a session is mounted on: checked before, taken away after.
struct MountPoint: Sendable, Equatable {
    /// Absolute, without links; as the kernel's table has it.
    let path: [UInt8]
    /// The mount of a daemon that is gone is there, which the new one is to replace.
    let isDeadThere: Bool

    var display: String { escapedForDisplay(path) }

    /// Checks that something can be mounted there and nothing of ours that lives is, and resolves the path.
    ///
    /// Throws `.notFound`, `.notFolder`, `.busy` (mounted already), `.notEmpty`, `.refused`.
    init(checking given: [UInt8], permitsNonempty: Bool) throws(Failure) {
        let shown = escapedForDisplay(given)
        guard !given.isEmpty, !given.contains(0) else { throw Failure(.invalid, "the mount point needs a path") }
        guard let path = resolvedPath(given) else {
            let code = errno
            if code == ENOTCONN, try MountPoint.hasMount(on: given) {
                (self.path, isDeadThere) = (given, true)
                return
            }
            switch code {
            case ENOENT: throw Failure(.notFound, "mount point \(shown) does not exist: make the folder first")
            case ENOTDIR: throw Failure(.notFolder, "mount point \(shown) is not a folder")
            case ENOTCONN:
                throw deadMount(shown)
            default: throw Failure(.refused, "mount point \(shown) cannot be reached: \(String(cString: strerror(code)))")
            }
        }
        self.path = path
        isDeadThere = try MountPoint.isDead(path) ? MountPoint.hasMount(on: path) : false
        if isDeadThere { return }
        if let mounted = try MountTable.entries().last(where: { $0.mountPoint == path && $0.type == "fuse.promisefs" }) {
            throw Failure(.busy, "mount point \(shown) is mounted already, for domain \(mounted.source)")
        }
        try checkFolder(shown, permitsNonempty: permitsNonempty)
    }

    /// Of a mount that is there and waits for this process: nothing is asked of it. `path` is as the kernel's table has it.
    init(resuming path: [UInt8]) { (self.path, isDeadThere) = (path, false) }

    /// Where the mount of this device is now: a folder above may have another name.
    func now(on device: (major: UInt32, minor: UInt32)?) -> MountPoint {
        let entries = ((try? MountTable.entries()) ?? []).filter { entry in
            entry.type == "fuse.promisefs" && device.map { $0 == (entry.major, entry.minor) } ?? false
        }
        if entries.contains(where: { $0.mountPoint == path }) { return self }
        // Bind mounts of it come later.
        return entries.first.map { MountPoint(resuming: $0.mountPoint) } ?? self
    }

    /// Of a domain whose mount waits for this process: where it is now, as a folder above may have another name since.
    init(resuming path: [UInt8], ofDomain domain: String) {
        let own = ((try? MountTable.entries()) ?? []).filter { $0.type == "fuse.promisefs" && $0.source == domain }
        let isThere = own.contains { $0.mountPoint == path }
        let device = own.first.map { ($0.major, $0.minor) }
        // Bind mounts of it come later. Of several domains of that name nothing is guessed.
        let isOne = own.allSatisfy { entry in device.map { $0 == (entry.major, entry.minor) } ?? false }
        self.init(resuming: isThere || !isOne ? path : own.first?.mountPoint ?? path)
    }

    private static func hasMount(on path: [UInt8]) throws(Failure) -> Bool {
        try MountTable.entries().contains { $0.mountPoint == path && $0.type == "fuse.promisefs" }
    }

    private func checkFolder(_ shown: String, permitsNonempty: Bool) throws(Failure) {
        do throws(SystemError) {
            let folder = try Descriptor.open(path, flags: O_RDONLY | O_DIRECTORY, label: "mount.point")
            if permitsNonempty { return }
            guard try listFolder(folder, label: "mount.point").isEmpty else {
                throw SystemError(errno: ENOTEMPTY, label: "mount.point")
            }
        } catch {
            switch error.errno {
            case ENOTEMPTY:
                throw Failure(.notEmpty, "mount point \(shown) is not empty: choose an empty folder, or mount with -o nonempty")
            case ENOTDIR: throw Failure(.notFolder, "mount point \(shown) is not a folder")
            case ENOTCONN:
                throw deadMount(shown)
            default: throw Failure(.refused, "mount point \(shown) cannot be opened: \(error.reason)")
            }
        }
    }

    /// The mount is there and its daemon is not: ENOTCONN, fuse(4). Asked by statvfs(3), because the kernel may answer stat(2)
    /// from what it remembers.
    var isDead: Bool { MountPoint.isDead(path) }

    private static func isDead(_ path: [UInt8]) -> Bool {
        var status = statvfs()
        return withCPath(path) { statvfs($0, &status) } != 0 && errno == ENOTCONN
    }

    /// Takes the mount away whatever uses it, and aborts the connection where this user may.
    func sever() throws(Failure) {
        if geteuid() == 0, withCPath(path, { umount2($0, CInt(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW)) }) == 0 { return }
        try unmount(lazy: true)
    }

    /// umount2(2) as root, else fusermount3(1). Blocks; never on a serving thread. What is not mounted is done.
    ///
    /// Throws `.busy` when programs use the mount, and `.refused` when this user may not unmount it.
    func unmount(lazy: Bool) throws(Failure) {
        if geteuid() == 0 {
            let flags = CInt(UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0))
            if withCPath(path, { umount2($0, flags) }) == 0 { return }
            switch errno {
            case EINVAL, ENOENT: return
            case EBUSY: throw busy
            case let code: throw Failure(.refused, "\(display) cannot be unmounted: \(String(cString: strerror(code)))")
            }
        }
        let status = try runUnmountHelper(lazy: lazy)
        if status == 0 || !isMounted { return }
        throw busy
    }

    private var busy: Failure {
        let inner = (try? MountTable.entries())?.first { $0.mountPoint.starts(with: path + [0x2F]) }
        if let inner {
            return Failure(
                .busy,
                "\(display) has another mount in it, \(escapedForDisplay(inner.mountPoint)): unmount that "
                    + "first, or this one with --lazy")
        }
        return Failure(
            .busy,
            "\(display) is in use: end the programs that have files or folders open in it, or unmount with --lazy")
    }

    private var isMounted: Bool {
        guard let entries = try? MountTable.entries() else { return true }
        return entries.contains { $0.mountPoint == path && $0.type == "fuse.promisefs" }
    }

    private func runUnmountHelper(lazy: Bool) throws(Failure) -> CInt {
        let words = ["fusermount3", "-u", "-q"] + (lazy ? ["-z"] : []) + ["--"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(withCPath(path) { strdup($0) })
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        closeOthers(from: STDERR_FILENO + 1, in: &actions)
        var process = pid_t()
        let problem = posix_spawnp(&process, "fusermount3", &actions, nil, arguments, environ)
        guard problem == 0 else {
            throw Failure(
                .refused, "fusermount3 could not be started: \(String(cString: strerror(problem))): install the package fuse3")
        }
        var status: CInt = 0
        while waitpid(process, &status, 0) == -1 {
            guard errno == EINTR else { return -1 }
        }
        return status
    }
}

private func deadMount(_ shown: String) -> Failure {
    Failure(.busy, "mount point \(shown) holds the mount of a daemon that is gone: run 'umount -l' on it first")
}

/// realpath(3), as bytes; nil with errno set.
private func resolvedPath(_ path: [UInt8]) -> [UInt8]? {
    withCPath(path) { path in
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return copiedBytes(resolved)
    }
}
