import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// What the operating system is asked about mounts, and told. Everything here blocks.
enum SystemMounts {
    enum Life: Sendable, Equatable {
        case alive
        /// The daemon has died: ENOTCONN.
        case dead
        /// Nothing came back in time.
        case silent
    }

    private static let probeTimeout: Duration = .seconds(3)

    /// Asks a mount for its space, by a process that is left behind when nothing comes back: a thread would keep this one from
    /// ending for as long as the daemon hangs.
    static func probe(_ mountPoint: [UInt8]) -> Life {
        let words = ["stat", "--file-system", "--format=%T", "--"].map { Array($0.utf8) }
        switch ChildProcess.runOrLeave(words + [mountPoint], limit: probeTimeout) {
        case .ended(0): return .alive
        case .left: return .silent
        // It has had an answer, so this gets one; or there is no such program.
        case .ended, .notStarted: return probeByThread(mountPoint)
        }
    }

    /// Whether looks at a path come back: below the mount of a daemon that hangs they do not. What waits
    /// there until somebody looks, to be mounted then, is left alone.
    static func answers(_ path: [UInt8]) -> Bool {
        let mount = (try? MountTable.current())?.entries.last { $0.mountPoint == path }
        return mount?.type == "autofs" || probe(path) != .silent
    }

    /// As `probe`. One that nobody will ever answer for is made a dead one first.
    static func settle(_ mount: MountEntry) -> Life {
        if AbandonedMount.end(mount) { return probe(mount.mountPoint) }
        let life = probe(mount.mountPoint)
        // A daemon that was killed just now takes a moment to end as far as it can.
        guard life == .silent, AbandonedMount.end(mount) else { return life }
        return probe(mount.mountPoint)
    }

    /// The same as `probe`, for the daemon of the mount itself.
    static func probeByThread(_ mountPoint: [UInt8]) -> Life {
        let answer = Monitor<Life?>(nil)
        OwnedThread(name: "probe") {
            // The kernel passes that on always; attributes and listings it may remember, and folders it opens by itself.
            var status = statvfs()
            let result = withCPath(mountPoint) { statvfs($0, &status) }
            let life: Life = result != 0 && (errno == ENOTCONN || errno == ECONNABORTED) ? .dead : .alive
            answer.update { $0 = life }
        }.detach()
        return answer.wait(timeout: probeTimeout) { $0 } ?? .silent
    }

    /// Takes a mount out of the tree whoever uses it (MNT_DETACH).
    static func detach(_ mountPoint: [UInt8]) throws(CommandFailure) {
        let place = escapedForDisplay(mountPoint)
        if geteuid() == 0 {
            let flags = CInt(2)  // MNT_DETACH, umount2(2)
            guard withCPath(mountPoint, { umount2($0, flags) }) == 0 else {
                throw CommandFailure("\(place) cannot be detached: \(String(cString: strerror(errno)))")
            }
            return
        }
        try runFusermount(["-u", "-z", "-q", "--"], mountPoint)
    }

    /// Unmounts in order; fails while files are open.
    static func unmount(_ mountPoint: [UInt8]) throws(CommandFailure) {
        guard geteuid() == 0 else { return try runFusermount(["-u", "-q", "--"], mountPoint) }
        guard withCPath(mountPoint, { umount2($0, 0) }) == 0 else {
            let reason = errno == EBUSY ? "files are open below it" : String(cString: strerror(errno))
            throw CommandFailure("\(escapedForDisplay(mountPoint)) cannot be unmounted: \(reason); --lazy detaches it")
        }
    }

    private static func runFusermount(_ arguments: [String], _ mountPoint: [UInt8]) throws(CommandFailure) {
        guard let program = program("fusermount3") else {
            throw CommandFailure("unmounting as an ordinary user needs fusermount3; install fuse3")
        }
        let argv = ([program] + arguments).map { Array($0.utf8) } + [mountPoint]
        guard let process = Spawn.start(Array(program.utf8), arguments: argv, descriptors: []), Spawn.wait(process) == 0 else {
            throw CommandFailure(
                "fusermount3 could not unmount \(escapedForDisplay(mountPoint)): files may be open below it, or it is not yours; "
                    + "--lazy detaches it")
        }
    }

    /// The path of a program in PATH, or where distributions put this one.
    static func program(_ name: String) -> String? {
        let folders = (environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").map(String.init)
        return (folders + ["/usr/bin", "/bin", "/usr/local/bin"]).map { "\($0)/\(name)" }.first {
            isAccessible(Array($0.utf8), X_OK)
        }
    }

    static func isAccessible(_ path: [UInt8], _ mode: CInt) -> Bool { withCPath(path) { access($0, mode) } == 0 }

    /// `user_allow_other` in /etc/fuse.conf (fuse(8)).
    static func allowsOthers() -> Bool {
        guard let text = smallFile("/etc/fuse.conf") else { return false }
        return text.split(separator: "\n").contains { $0.trimmed == "user_allow_other" }
    }

    /// The start of a small text file, as of /proc and /sys; nil when it cannot be read.
    static func smallFile(_ path: String) -> String? {
        readSmallFile(Array(path.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }
}
