import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire

/// The checks of `doctor`. Each looks at one thing and changes nothing that stays. Blocking.
enum Doctor {
    /// FUSE passthrough came with this kernel; FUSE over io_uring with the other.
    private static let passthroughKernel = KernelVersion(major: 6, minor: 9)
    private static let watchesWanted = 65536
    private static let freeBytesWanted: UInt64 = 1 << 30

    static func examine() throws(CommandFailure) -> [Finding] {
        let kernel = KernelVersion.current()
        let capabilities = effectiveCapabilities(status: SystemMounts.smallFile("/proc/self/status") ?? "")
        var findings = [device(), unmounter()]
        findings.append(passthrough(kernel, capabilities: capabilities, helper: HelperPlace.backing()))
        findings.append(
            rings(
                kernel, setting: SystemMounts.smallFile("/sys/module/fuse/parameters/enable_uring"),
                disabled: SystemMounts.smallFile("/proc/sys/kernel/io_uring_disabled")))
        findings.append(otherUsers())
        findings += state(try stateBase())
        findings.append(runtimeFolder())
        findings.append(watches(SystemMounts.smallFile("/proc/sys/fs/inotify/max_user_watches")))
        findings.append(companions(HelperPlace.echo(), holder: HelperPlace.holder()))
        findings.append(
            sandbox(
                view: HelperPlace.view(), locks: HelperPlace.locks(), hasBubblewrap: Sandbox.isInstalled))
        return findings
    }

    // MARK: - FUSE

    private static func device() -> Finding {
        do throws(SystemError) {
            _ = try Descriptor.open(Array("/dev/fuse".utf8), flags: O_RDWR, label: "doctor.device")
            return .ok("/dev/fuse", "can be opened")
        } catch {
            if error.errno == EACCES || error.errno == EPERM {
                return .problem(
                    "/dev/fuse", "may not be opened by this user", "join the group that owns it, or have root 'chmod 666' it")
            }
            return .problem("/dev/fuse", "cannot be opened: \(error.reason)", "'modprobe fuse', and 'apt install fuse3'")
        }
    }

    private static func unmounter() -> Finding {
        if let program = SystemMounts.program("fusermount3") { return .ok("fusermount3", program) }
        guard geteuid() == 0 else {
            return .problem("fusermount3", "is missing, and ordinary users mount with it", "'apt install fuse3'")
        }
        return .warning("fusermount3", "is missing; root mounts without it, ordinary users cannot", "'apt install fuse3'")
    }

    static func passthrough(_ kernel: KernelVersion, capabilities: UInt64, helper: [UInt8]?) -> Finding {
        guard kernel >= passthroughKernel else {
            return .warning(
                "passthrough", "kernel \(kernel) has none, so content is served by the daemon",
                "run Linux \(passthroughKernel) or newer")
        }
        // CAP_SYS_ADMIN is capability 21 (capabilities(7)).
        guard capabilities & (1 << 21) != 0 else {
            if let helper {
                let path = escapedForDisplay(helper)
                return .ok("passthrough", "kernel \(kernel) and \(path) are there; 'status' of a mount says whether it works")
            }
            return .warning(
                "passthrough", "needs CAP_SYS_ADMIN, so content is served by the daemon",
                "'sudo make helper' for full speed, or mount as root")
        }
        return .ok("passthrough", "kernel \(kernel) and CAP_SYS_ADMIN are there")
    }

    /// `setting` is the module's parameter, `disabled` the sysctl: 0 for nobody, 1 without CAP_SYS_ADMIN or the group, 2 for all.
    static func rings(_ kernel: KernelVersion, setting: String?, disabled: String? = nil) -> Finding {
        // The device is what mounts use, so that nothing is wrong without it.
        let cost = "; with --io-uring open files end with the daemon"
        guard let setting else { return .ok("io_uring", "kernel \(kernel) has no FUSE over io_uring; mounts use the device") }
        guard setting.hasPrefix("Y") || setting.hasPrefix("1") else {
            return .ok("io_uring", "FUSE over io_uring is switched off in the kernel; mounts use the device")
        }
        let isDisabled = disabled.map { $0.hasPrefix("2") || $0.hasPrefix("1") && geteuid() != 0 } ?? false
        guard !isDisabled else { return .ok("io_uring", "io_uring is disabled for this user; mounts use the device") }
        return .ok("io_uring", "FUSE over io_uring is switched on in the kernel" + cost)
    }

    private static func otherUsers() -> Finding {
        if geteuid() == 0 { return .ok("allow_other", "root may use it") }
        if SystemMounts.allowsOthers() { return .ok("allow_other", "user_allow_other is set in /etc/fuse.conf") }
        return .warning("allow_other", "ordinary users may not use it", "add a line 'user_allow_other' to /etc/fuse.conf")
    }

    static func effectiveCapabilities(status: String) -> UInt64 {
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        return line.flatMap { UInt64($0.dropFirst(7).trimmed, radix: 16) } ?? 0
    }

    // MARK: - Folders

    /// The folder that domains' state folders are made in.
    private static func stateBase() throws(CommandFailure) -> [UInt8] {
        let folder = try BaseFolders.state(domain: "x")
        return Array(folder.dropLast(2))
    }

    /// Looks at the folder, or at what is there of the folders above it: a first mount makes the rest.
    private static func state(_ folder: [UInt8]) -> [Finding] {
        var existing = folder
        while existing.count > 1, !SystemMounts.isAccessible(existing, F_OK) {
            existing = Array(existing[..<(existing.lastIndex(of: 0x2F) ?? 0)])
            if existing.isEmpty { existing = [0x2F] }
        }
        let shown = escapedForDisplay(folder)
        guard SystemMounts.isAccessible(existing, W_OK | X_OK) else {
            return [
                .problem("state folder", "\(shown) cannot be written", "give another with PROMISEFS_STATE_DIR or --state-dir")
            ]
        }
        var findings = [Finding.ok("state folder", "\(shown) can be written")]
        var space = statvfs()
        if withCPath(existing, { statvfs($0, &space) }) == 0 {
            let free = UInt64(space.f_bavail) * UInt64(space.f_frsize)
            let text = "\(ByteSize.text(free)) free for content"
            findings.append(
                free >= freeBytesWanted
                    ? .ok("disk", text) : .warning("disk", text, "free some, or bound the content with --cache-limit"))
        }
        findings.append(attributes(existing))
        return findings
    }

    /// Tries `user.` attributes on a file of its own that is gone at once.
    private static func attributes(_ folder: [UInt8]) -> Finding {
        let path = folder + Array("/.promisefs-doctor-\(getpid())".utf8)
        do throws(SystemError) {
            let file = try Descriptor.open(path, flags: O_RDWR | O_CREAT | O_EXCL, label: "doctor.attributeFile")
            defer { _ = withCPath(path) { Glibc.unlink($0) } }
            try setAttribute("user.promisefs.doctor", to: [1], of: file.number, label: "doctor.attribute")
            return .ok("attributes", "the state folder's disk keeps extended attributes")
        } catch {
            return .warning(
                "attributes", "the state folder's disk keeps no extended attributes: \(error.reason)",
                "put it on ext4, xfs or btrfs")
        }
    }

    private static func runtimeFolder() -> Finding {
        let user = geteuid()
        let folder = ControlSocket.folder(user: user, runtimeFolder: environment("XDG_RUNTIME_DIR"))
        let parent = String(folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)])
        let isThere = SystemMounts.isAccessible(Array(folder.utf8), W_OK | X_OK)
        guard isThere || SystemMounts.isAccessible(Array(parent.utf8), W_OK | X_OK) else {
            return .problem("sockets", "\(folder) cannot be made", "set XDG_RUNTIME_DIR to a folder of your own")
        }
        return .ok("sockets", "control sockets go to \(folder)")
    }

    static func watches(_ text: String?) -> Finding {
        guard let number = text.flatMap({ Int($0.trimmed) }) else {
            return .warning("inotify", "is not available, so folders are polled", "use a kernel with CONFIG_INOTIFY_USER")
        }
        guard number >= watchesWanted else {
            return .warning(
                "inotify", "\(number) watches are few for large folders",
                "'sysctl fs.inotify.max_user_watches=\(watchesWanted * 8)'")
        }
        return .ok("inotify", "\(number) watches")
    }

    /// The small programs beside this one.
    static func companions(_ echo: [UInt8]?, holder: [UInt8]?) -> Finding {
        let place = "beside this program or in /usr/libexec/promisefs"
        if holder == nil {
            return .problem(
                "programs", "promisefs-holder is missing, and a mount outlives its daemon by it",
                "install it \(place), or mount with --no-supervision")
        }
        if echo == nil {
            return .warning(
                "programs", "promisefs-echo is missing, so programs that watch by inotify hear of no remote changes",
                "install it \(place)")
        }
        return .ok("programs", "a mount outlives its daemon, and programs that watch hear of remote changes")
    }
}

extension Doctor {
    /// What `run --app` starts.
    static func sandbox(view: [UInt8]?, locks: [UInt8]?, hasBubblewrap: Bool) -> Finding {
        let place = "beside this program or in /usr/libexec/promisefs"
        if view == nil {
            return .warning(
                "sandbox", "promisefs-view is missing, so 'run --app' starts no application", "install it \(place)")
        }
        if !hasBubblewrap {
            return .warning(
                "sandbox", "bubblewrap is missing, so 'run --app' starts no application",
                "install the package 'bubblewrap'")
        }
        if locks == nil {
            return .warning(
                "sandbox", "promisefs-locks is missing, so locks in a sandbox hold in that sandbox only",
                "install it \(place)")
        }
        return .ok("sandbox", "'run --app' finds bubblewrap, promisefs-view and promisefs-locks")
    }
}

/// The first two numbers of a kernel's release.
struct KernelVersion: Comparable, CustomStringConvertible, Sendable {
    var major: Int
    var minor: Int

    init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// `6.18.44-generic`; 0.0 when it does not begin with two numbers.
    init(release: String) {
        let numbers = release.split(whereSeparator: { !$0.isASCII || !$0.isNumber }).prefix(2).map { Int($0) ?? 0 }
        self.init(major: numbers.first ?? 0, minor: numbers.count > 1 ? numbers[1] : 0)
    }

    static func current() -> KernelVersion {
        KernelVersion(release: SystemMounts.smallFile("/proc/sys/kernel/osrelease") ?? "")
    }

    static func < (left: KernelVersion, right: KernelVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    var description: String { "\(major).\(minor)" }
}
