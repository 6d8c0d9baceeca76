import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

/// What `doctor` looks at of folders: where state is kept, where sockets are, where domains are mounted. Blocking; nothing stays.
enum DoctorFolders {
    private static let freeBytesWanted: UInt64 = 1 << 30
    /// Less than this, and not even the index can be written.
    private static let freeBytesNeeded: UInt64 = 16 << 20

    static func status(of path: [UInt8]) -> stat? {
        var status = stat()
        return withCPath(path) { lstat($0, &status) } == 0 ? status : nil
    }

    // MARK: - State

    /// Looks at the folder, or at what is there of the folders above it: a first mount makes the rest.
    static func state(_ folder: [UInt8], of subject: String) -> [Finding] {
        guard SystemMounts.answers(folder) else { return [silent(folder, subject)] }
        var existing = folder
        while existing.count > 1, !SystemMounts.isAccessible(existing, F_OK) {
            existing = Array(existing[..<(existing.lastIndex(of: 0x2F) ?? 0)])
            if existing.isEmpty { existing = [0x2F] }
        }
        let shown = escapedForDisplay(folder)
        if existing == folder, let status = status(of: folder), status.st_uid != geteuid(),
            status.st_mode & S_IFMT == S_IFDIR
        {
            return [
                .problem(
                    subject, "\(shown) belongs to another user (\(status.st_uid))",
                    run: "chown -R \(geteuid()) \(shellWord(folder))",
                    geteuid() == 0 ? "" : " as root")
            ]
        }
        guard SystemMounts.isAccessible(existing, W_OK | X_OK) else {
            if existing == folder {
                return [
                    .problem(
                        subject, "\(shown) cannot be written",
                        run: "chmod u+rwx \(shellWord(folder))")
                ]
            }
            return [
                .problem(
                    subject, "\(shown) cannot be made",
                    "give another with PROMISEFS_STATE_DIR or --state-dir")
            ]
        }
        var findings = [Finding.ok(subject, "\(shown) can be written")]
        findings += room(existing, subject)
        findings += attributes(existing, subject)
        return findings
    }

    /// What is on a disk or a mount that hangs is not looked at: nobody would come back from there.
    static func silent(_ path: [UInt8], _ subject: String, _ what: String = "") -> Finding {
        .problem(
            subject, "\(what)\(escapedForDisplay(path)) does not answer",
            "look at the disk or the mount that it is on")
    }

    private static func room(_ folder: [UInt8], _ subject: String) -> [Finding] {
        var space = statvfs()
        guard withCPath(folder, { statvfs($0, &space) }) == 0 else { return [] }
        let free = UInt64(space.f_bavail) * UInt64(space.f_frsize)
        let name = subject == "state folder" ? "disk" : "disk of \(subject)"
        let text = "\(ByteSize.text(free)) free for content"
        if space.f_files > 0, space.f_favail < 64 {
            return [
                .problem(
                    name, "has no inode left for another file",
                    "remove files that are not needed there")
            ]
        }
        if free < freeBytesNeeded {
            return [
                .problem(
                    name, "is full: \(text), and nothing can be fetched or saved",
                    "free some; 'promisefs evict PATH…' drops content that the provider has")
            ]
        }
        if free < freeBytesWanted {
            return [.warning(name, text, "free some, or bound the content with --cache-limit")]
        }
        return [.ok(name, text)]
    }

    /// Tries `user.` attributes on a file of its own that is gone at once.
    private static func attributes(_ folder: [UInt8], _ subject: String) -> [Finding] {
        let path = folder + Array("/.promisefs-doctor-\(getpid())".utf8)
        do throws(SystemError) {
            let file = try Descriptor.open(
                path, flags: O_RDWR | O_CREAT | O_EXCL, label: "doctor.attributeFile")
            defer { _ = withCPath(path) { Glibc.unlink($0) } }
            try setAttribute(
                "user.promisefs.doctor", to: [1], of: file.number, label: "doctor.attribute")
            return [.ok("attributes", "the state folder's disk keeps extended attributes")]
        } catch {
            // That it is full has been said.
            if error.errno == ENOSPC || error.errno == EDQUOT { return [] }
            return [
                .warning(
                    "attributes",
                    "the \(subject)'s disk keeps no extended attributes: \(error.reason)",
                    "put it on ext4, xfs or btrfs")
            ]
        }
    }

    // MARK: - Sockets

    static func sockets() -> Finding {
        let user = geteuid()
        let runtime = environment("XDG_RUNTIME_DIR")
        let folder = ControlSocket.folder(user: user, runtimeFolder: runtime)
        let bytes = Array(folder.utf8)
        let parent = String(folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)])
        if let status = status(of: bytes) {
            if status.st_uid != user {
                return .problem(
                    "sockets",
                    "\(folder) belongs to another user (\(status.st_uid)), so it is not used",
                    run: "rm -rf \(shellWord(bytes))",
                    " as root, or set XDG_RUNTIME_DIR to a folder of your own")
            }
            if status.st_mode & S_IFMT != S_IFDIR {
                return .problem(
                    "sockets", "\(folder) is not a folder", run: "rm \(shellWord(bytes))")
            }
            guard SystemMounts.isAccessible(bytes, W_OK | X_OK) else {
                return .problem(
                    "sockets", "\(folder) cannot be written", run: "chmod 700 \(shellWord(bytes))")
            }
        } else if !SystemMounts.isAccessible(Array(parent.utf8), F_OK) {
            return .problem(
                "sockets", "\(parent) does not exist, and sockets are to go there",
                run: "mkdir -p -m 700 \(shellWord(Array(parent.utf8)))",
                ", or 'unset XDG_RUNTIME_DIR'")
        } else if !SystemMounts.isAccessible(Array(parent.utf8), W_OK | X_OK) {
            return .problem(
                "sockets", "\(folder) cannot be made", run: "unset XDG_RUNTIME_DIR",
                ", or set it to a folder of your own")
        }
        // Of a name of usual length.
        if folder.utf8.count + "/documents.sock".utf8.count > ControlSocket.pathByteCountMax {
            return .problem(
                "sockets", "\(folder) is too long for the path of a socket",
                run: "unset XDG_RUNTIME_DIR",
                ", or set it to a shorter one")
        }
        return .ok("sockets", "control sockets go to \(folder)")
    }

    // MARK: - Mount points

    /// Of a domain that is configured; `isMounted`: something is mounted there already.
    static func mountPoint(_ place: [UInt8], _ subject: String, isMounted: Bool) -> [Finding] {
        let (shown, word) = (escapedForDisplay(place), shellWord(place))
        guard !isMounted else { return [] }
        guard let status = status(of: place) else {
            // A dead mount answers ENOTCONN, which is found elsewhere.
            guard errno == ENOENT else { return [] }
            return [
                .problem(
                    subject, "its mount point \(shown) does not exist", run: "mkdir -p \(word)")
            ]
        }
        func inTheWay(_ message: String) -> [Finding] {
            // Whoever follows the advice to the letter must not lose the machine by it.
            guard mayGoAside(place, status) else { return [.problem(subject, message, "mend 'mountpoint'")] }
            let command = "mv \(word) \(shellWord(place + Array(".before".utf8))); mkdir \(word)"
            return [.problem(subject, message, run: command)]
        }
        guard status.st_mode & S_IFMT == S_IFDIR || status.st_mode & S_IFMT == S_IFLNK else {
            return inTheWay("its mount point \(shown) is not a folder")
        }
        guard geteuid() == 0 || SystemMounts.isAccessible(place, W_OK) else {
            return [
                .problem(
                    subject,
                    "its mount point \(shown) cannot be written by you, and only then may you mount there",
                    run: status.st_uid == geteuid()
                        ? "chmod u+rwx \(word)" : "chown \(geteuid()) \(word)",
                    status.st_uid == geteuid() ? "" : " as root")
            ]
        }
        guard
            let opened = try? Descriptor.open(
                place, flags: O_RDONLY | O_DIRECTORY, label: "doctor.mountPoint"),
            let entries = try? listFolder(opened, label: "doctor.mountPointList"), !entries.isEmpty
        else { return [] }
        return inTheWay("its mount point \(shown) is not empty")
    }

    /// A file or folder that is nobody's but its user's: no folder of the system or at the top, no device, nobody's home.
    private static func mayGoAside(_ place: [UInt8], _ status: stat) -> Bool {
        let parts = place.split(separator: 0x2F).map { String(decoding: $0, as: UTF8.self) }
        let ofTheSystem = ["bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr"]
        guard parts.count >= 2, !ofTheSystem.contains(parts[0]),
            parts[0] != "var" || parts[1] == "tmp", parts[0] != "home" || parts.count >= 3,
            [S_IFREG, S_IFDIR, S_IFLNK].contains(status.st_mode & S_IFMT)
        else { return false }
        let home = simplified(Array((environment("HOME") ?? "/").utf8))
        return !(home + [0x2F]).starts(with: place + [0x2F])
    }
}
