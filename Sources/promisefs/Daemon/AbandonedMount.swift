import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// A mount whose daemon and holder were both killed while a thread of the daemon was in a call that nothing ends: it told the
/// kernel of a name, and waits for the folder, which a program has that waits for the daemon. So the device stays open, and
/// whoever calls the mount waits for good. Only the end of the connection ends that.
enum AbandonedMount {
    private static let patience = Duration.seconds(5)

    /// Whether all who could answer have been killed. Blocking.
    static func isOne(_ mount: MountEntry) -> Bool { stuckDaemon(of: mount) != nil }

    /// Ends the connection of a mount that is one: whoever waits gets an error. False where it is none, or this user may not.
    static func end(_ mount: MountEntry) -> Bool {
        guard let daemon = stuckDaemon(of: mount), abort(mount) else { return false }
        let end = ContinuousClock.now + patience
        while ContinuousClock.now < end, ProcessTable.isStuckInItsEnd(daemon) { usleep(20_000) }
        return true
    }

    /// Nil while somebody has the device who may serve it, and where the kernel does not say whose devices are open (seen with
    /// Linux 6.18).
    private static func stuckDaemon(of mount: MountEntry) -> Int32? {
        guard geteuid() == 0 || mount.user == geteuid(), let number = number(of: mount) else { return nil }
        let all = ProcessTable.all().filter(isOurs)
        let stuck = all.filter(ProcessTable.isStuckInItsEnd)
        // There is hardly ever one, and those that live may have many files open.
        let daemon = stuck.first { ProcessTable.fuseConnections(of: $0).contains(number) }
        guard let daemon else { return nil }
        let isServed = all.contains { process in
            !stuck.contains(process) && ProcessTable.fuseConnections(of: process).contains(number)
        }
        return isServed ? nil : daemon
    }

    /// One of our programs.
    private static func isOurs(_ process: Int32) -> Bool {
        SystemMounts.smallFile("/proc/\(process)/comm")?.hasPrefix("promisefs") ?? false
    }

    private static func number(of mount: MountEntry) -> UInt32? {
        mount.device.split(separator: UInt8(ascii: ":")).last.flatMap { UInt32(String(decoding: $0, as: UTF8.self)) }
    }

    /// fs/fuse/control.c: the file belongs to whoever mounted.
    private static func abort(_ mount: MountEntry) -> Bool {
        guard let number = number(of: mount) else { return false }
        let file = open("/sys/fs/fuse/connections/\(number)/abort", O_WRONLY | O_CLOEXEC)
        if file >= 0 {
            defer { close(file) }
            return write(file, "1", 1) == 1
        }
        // Where that is not mounted. Programs use it, so it stays; but its connection is ended before that is found.
        guard geteuid() == 0 else { return false }
        let flags = CInt(1) | 8  // MNT_FORCE and UMOUNT_NOFOLLOW, umount2(2)
        return withCPath(mount.mountPoint) { umount2($0, flags) } == 0 || errno == EBUSY
    }
}

/// Who serves a mount of this machine.
enum MountProcesses {
    static func holder(of mountPoint: [UInt8]) -> Int32? {
        ProcessTable.named("promisefs-holde").first { process in
            let words = readSmallFile(Array("/proc/\(process)/cmdline".utf8))?.split(
                separator: 0, omittingEmptySubsequences: false)
            return words.map { $0.count > 1 && $0[1].elementsEqual(mountPoint) } ?? false
        }
    }

    /// The child of its holder, which starts another one when that ends.
    static func daemon(of mountPoint: [UInt8]) -> Int32? {
        guard let holder = holder(of: mountPoint) else { return nil }
        return ProcessTable.named("promisefs").first { process in
            SystemMounts.smallFile("/proc/\(process)/status")?.split(separator: "\n")
                .contains { $0.hasPrefix("PPid:") && $0.dropFirst(5).trimmed == "\(holder)" }
                ?? false
        }
    }
}
