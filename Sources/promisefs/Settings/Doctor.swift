import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire

/// The checks of `doctor`. Each looks at one thing and changes nothing that stays. Blocking.
enum Doctor {
    /// FUSE passthrough came with this kernel; FUSE over io_uring with the other.
    private static let passthroughKernel = KernelVersion(major: 6, minor: 9)
    private static let watchesWanted = 65536

    static func examine() -> [Finding] {
        let kernel = KernelVersion.current()
        let capabilities = effectiveCapabilities(status: SystemMounts.smallFile("/proc/self/status") ?? "")
        var findings = [device(), unmounter()]
        findings.append(passthrough(kernel, capabilities: capabilities, helper: HelperPlace.backing()))
        findings.append(
            rings(
                kernel, setting: SystemMounts.smallFile("/sys/module/fuse/parameters/enable_uring"),
                disabled: SystemMounts.smallFile("/proc/sys/kernel/io_uring_disabled")))
        findings.append(otherUsers())
        findings += state()
        findings.append(DoctorFolders.sockets())
        findings.append(watches(SystemMounts.smallFile("/proc/sys/fs/inotify/max_user_watches")))
        findings.append(companions(HelperPlace.echo(), holder: HelperPlace.holder()))
        findings.append(
            sandbox(view: HelperPlace.view(), locks: HelperPlace.locks(), bubblewrap: SystemMounts.program("bwrap")))
        findings += limits(
            instances: SystemMounts.smallFile("/proc/sys/fs/inotify/max_user_instances"), files: openFilesMax())
        return findings
    }

    // MARK: - FUSE

    private static func device() -> Finding {
        do throws(SystemError) {
            _ = try Descriptor.open(Array("/dev/fuse".utf8), flags: O_RDWR, label: "doctor.device")
            return .ok("/dev/fuse", "can be opened")
        } catch {
            if error.errno == EACCES || error.errno == EPERM {
                if geteuid() == 0 {
                    return .problem("/dev/fuse", "is kept from this container", "start it with '--device /dev/fuse'")
                }
                return .problem(
                    "/dev/fuse", "may not be opened by this user", run: "chmod 666 /dev/fuse",
                    " as root, or join the group that owns it")
            }
            // The kernel has it, and nobody has made the file, as in a container.
            let devices = SystemMounts.smallFile("/proc/misc") ?? ""
            if error.errno == ENOENT, devices.split(separator: "\n").contains(where: { $0.hasSuffix(" fuse") }) {
                return .problem(
                    "/dev/fuse", "does not exist, though the kernel has FUSE", run: "mknod -m 666 /dev/fuse c 10 229", " as root")
            }
            return .problem("/dev/fuse", "cannot be opened: \(error.reason)", run: "modprobe fuse", " as root")
        }
    }

    private static func unmounter() -> Finding {
        if let program = SystemMounts.program("fusermount3") {
            var status = stat()
            guard withCPath(Array(program.utf8), { stat($0, &status) }) == 0, status.st_uid == 0, status.st_mode & S_ISUID != 0
            else {
                let message = "\(program) has not root's rights, so ordinary users cannot mount"
                let command = "chown root \(program); chmod 4755 \(program)"
                if geteuid() == 0 { return .warning("fusermount3", message, run: command) }
                return .problem("fusermount3", message, run: command, " as root")
            }
            if geteuid() != 0, getpwuid(geteuid()) == nil {
                let message = "mounts for nobody without a name, and user \(geteuid()) has none"
                return .problem("fusermount3", message, "add it to /etc/passwd")
            }
            return .ok("fusermount3", program)
        }
        let command = "apt install fuse3"
        guard geteuid() == 0 else {
            return .problem("fusermount3", "is missing, and ordinary users mount with it", run: command, " as root")
        }
        return .warning("fusermount3", "is missing; root mounts without it, ordinary users cannot", run: command)
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
                guard geteuid() == 0 || hasCapability(helper) else {
                    return .warning(
                        "passthrough", "\(path) has no capability, so content is served by the daemon",
                        run: "setcap cap_sys_admin+ep \(shellWord(helper))", " as root, for full speed")
                }
                return .ok("passthrough", "kernel \(kernel) and \(path) are there; 'status' of a mount says whether it works")
            }
            return .warning(
                "passthrough", "needs CAP_SYS_ADMIN, so content is served by the daemon",
                "'sudo make helper' for full speed, or mount as root")
        }
        return .ok("passthrough", "kernel \(kernel) and CAP_SYS_ADMIN are there")
    }

    /// Whether something was given to the program by setcap(8); a file that is not there has nothing to say.
    private static func hasCapability(_ program: [UInt8]) -> Bool {
        guard SystemMounts.isAccessible(program, F_OK) else { return true }
        let found = try? attribute("security.capability", of: program, in: AT_FDCWD, label: "doctor.capability")
        return found != nil
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

    static let allowOthers = "echo user_allow_other >> /etc/fuse.conf"

    private static func otherUsers() -> Finding {
        if geteuid() == 0 { return .ok("allow_other", "root may use it") }
        if SystemMounts.allowsOthers() { return .ok("allow_other", "user_allow_other is set in /etc/fuse.conf") }
        return .warning("allow_other", "ordinary users may not use it", run: allowOthers, " as root")
    }

    static func effectiveCapabilities(status: String) -> UInt64 {
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        return line.flatMap { UInt64($0.dropFirst(7).trimmed, radix: 16) } ?? 0
    }

    // MARK: - Folders

    /// The folder that domains' state folders are made in.
    private static func state() -> [Finding] {
        do throws(CommandFailure) {
            return DoctorFolders.state(Array(try BaseFolders.state(domain: "x").dropLast(2)), of: "state folder")
        } catch {
            // Everything else is worth a look, too.
            return [.problem("state folder", "is in nobody's home", error.message)]
        }
    }

    static func watches(_ text: String?) -> Finding {
        guard let number = text.flatMap({ Int($0.trimmed) }) else {
            return .warning("inotify", "is not available, so folders are polled", "use a kernel with CONFIG_INOTIFY_USER")
        }
        guard number >= watchesWanted else {
            return .warning(
                "inotify", "\(number) watches are few for large folders",
                run: "sysctl fs.inotify.max_user_watches=\(watchesWanted * 8)", " as root")
        }
        return .ok("inotify", "\(number) watches")
    }

    /// The small programs beside this one.
    static func companions(_ echo: [UInt8]?, holder: [UInt8]?) -> Finding {
        let place = "beside this program or in /usr/libexec/promisefs"
        let command = "apt install --reinstall promisefs"
        if holder == nil {
            return .problem(
                "programs", "promisefs-holder is missing, and a mount outlives its daemon by it",
                run: command, ", or put it \(place), or mount with --no-supervision")
        }
        if echo == nil {
            return .warning(
                "programs", "promisefs-echo is missing, so programs that watch by inotify hear of no remote changes",
                run: command, ", or put it \(place)")
        }
        return .ok("programs", "a mount outlives its daemon, and programs that watch hear of remote changes")
    }
}

extension Doctor {
    private static let instancesWanted = 16
    private static let filesWanted = 4096

    /// What `run --app` starts programs with.
    static func sandbox(view: [UInt8]?, locks: [UInt8]?, bubblewrap: String?) -> Finding {
        if view == nil {
            return .warning(
                "run --app", "promisefs-view is missing, so applications get no view of their own",
                run: "apt install --reinstall promisefs", ", or put it beside this program")
        }
        guard let bubblewrap else {
            return .warning(
                "run --app", "bwrap is missing, and applications are shut in by it", run: "apt install bubblewrap", " as root")
        }
        if locks == nil {
            return .warning(
                "run --app", "promisefs-locks is missing, so locks in a sandbox hold in that sandbox only",
                run: "apt install --reinstall promisefs", ", or put it beside this program")
        }
        return .ok("run --app", "\(bubblewrap), promisefs-view and promisefs-locks are there")
    }

    /// `files`: of open files, the most that this user may ask for.
    static func limits(instances: String?, files: UInt64) -> [Finding] {
        var findings: [Finding] = []
        if let number = instances.flatMap({ Int($0.trimmed) }), number < instancesWanted {
            findings.append(
                .warning(
                    "inotify", "\(number) instances are few: each folder that is mounted needs one",
                    run: "sysctl fs.inotify.max_user_instances=128", " as root"))
        }
        if files < filesWanted {
            findings.append(
                .warning(
                    "open files", "\(files) are few: each file that is open on a mount is one of them",
                    run: "prlimit --pid $$ --nofile=524288", " as root, or 'nofile' in /etc/security/limits.conf"))
        }
        return findings
    }

    private static func openFilesMax() -> UInt64 {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? UInt64(limit.rlim_max) : .max
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
