import Glibc
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseSystem
import PromiseWire

/// What is to be mounted where, with every path absolute. Making one changes nothing; `prepare` does.
struct MountPlan: Sendable {
    var name: String
    var provider: ProviderName
    var mountPoint: [UInt8]
    var stateFolder: [UInt8]
    /// The provider's folder is ours and is made when it is missing.
    var isEmbedded: Bool
    /// The mount point as it was given.
    private var word: String

    var logFolder: [UInt8] { stateFolder + Array("/log".utf8) }
    var logFile: [UInt8] { logFolder + Array("/daemon.log".utf8) }

    var socketPath: String { ControlSocket.path(domain: name, user: geteuid(), runtimeFolder: environment("XDG_RUNTIME_DIR")) }

    var configuration: DomainConfiguration {
        var configuration = DomainConfiguration(
            name: name, provider: provider.text, stateFolder: stateFolder, mountPoint: mountPoint)
        configuration.credentialsFile = BaseFolders.credentials()
        return configuration
    }

    /// Blocking: resolves links, unless `isResolved`: the process that started this one has done
    /// so, and a provider's folder may hang by now. `operands` are PROVIDER, which may be missing,
    /// and MOUNTPOINT.
    init(
        operands: [String], domain: String?, stateFolder: [UInt8]?, isResolved: Bool = false
    ) throws(CommandFailure) {
        isEmbedded = operands.count == 1
        word = operands.last ?? ""
        if isEmbedded {
            let cloud = try BaseFolders.data() + Array("/promisefs/cloud".utf8)
            provider = try ProviderName(folder: cloud, isResolved: isResolved)
        } else {
            provider = try ProviderName(parsing: operands[0], isResolved: isResolved)
        }
        name = domain ?? (isEmbedded ? "cloud" : provider.derivedDomain)
        let state: [UInt8]
        if let stateFolder { state = stateFolder } else { state = try BaseFolders.state(domain: name) }
        do throws(PromiseError) {
            let given = RawArguments.bytes(of: operands.last ?? "")
            let resolved = try resolveParent(of: given)
            // A link to a folder may be mounted on; a dead mount cannot be resolved further.
            mountPoint = isResolved ? resolved : realPath(resolved) ?? resolved
            self.stateFolder = simplified(try absolutePath(state))
        } catch {
            throw CommandFailure(error)
        }
    }

    // MARK: - Checks

    /// Looks at everything that would keep the mount from working, and makes the folders that are missing. Returns what is to
    /// be said: the mount of a daemon that has died is there, and stays until the new one takes its place. Blocking.
    func prepare(mountOptions: [String]) throws(CommandFailure) -> String? {
        try ProcessLimits.check()
        try checkSource(mountOptions)
        let notice = try checkPlace()
        try prepareProvider()
        try MountPlan.checkFuse(mountOptions: mountOptions)
        do throws(SystemError) {
            try makeFolders(logFolder, label: "mount.stateFolder")
        } catch {
            let place = escapedForDisplay(stateFolder)
            throw CommandFailure(
                "the state folder cannot be made: \(place): \(error.reason); give another with --state-dir",
                exitStatus: error.errno == EACCES || error.errno == EPERM ? ExitStatus.refused : ExitStatus.failed)
        }
        return notice
    }

    /// By the mount's source a command knows its domain: another domain's name would make it work on that one.
    private func checkSource(_ mountOptions: [String]) throws(CommandFailure) {
        for option in mountOptions where option.hasPrefix("fsname=") {
            let source = String(option.dropFirst("fsname=".count))
            guard source != name, DomainName.isValid(source) else { continue }
            throw CommandFailure(
                "'\(option)' could be another domain's name, and commands would work on that one: "
                    + "give a source with a slash, as fsname=/\(source)",
                exitStatus: ExitStatus.usage)
        }
    }

    /// The same of where it is to be mounted; nothing is made.
    func checkPlace() throws(CommandFailure) -> String? {
        let notice = try checkMounts()
        if notice == nil { try checkMountPoint() }
        try checkOverlap()
        return notice
    }

    private var place: String { escapedForDisplay(mountPoint) }

    /// Refuses a living mount of ours; a dead one is told.
    private func checkMounts() throws(CommandFailure) -> String? {
        let table: MountTable
        do throws(PromiseError) { table = try MountTable.current() } catch { throw CommandFailure(error) }
        guard let entry = table.entries.last(where: { $0.mountPoint == mountPoint }), entry.isPromiseFS else {
            let own = table.promiseMounts(of: geteuid()).first { $0.domain == name }
            if let other = own, SystemMounts.settle(other) != .dead {
                throw CommandFailure(
                    "the domain '\(name)' is mounted already on \(escapedForDisplay(other.mountPoint)); use --domain"
                )
            }
            return nil
        }
        switch SystemMounts.settle(entry) {
        case .alive: throw CommandFailure("\(place) is mounted already: 'promisefs status \(shellWord(mountPoint))' shows it")
        case .silent:
            throw CommandFailure(
                "\(place) is mounted and its daemon does not answer; 'promisefs unmount --lazy \(shellWord(mountPoint))'")
        case .dead: return "the mount of a daemon that had died on \(place) is replaced"
        }
    }

    private func checkMountPoint() throws(CommandFailure) {
        var isEmpty = true
        do throws(SystemError) {
            let folder = try Descriptor.open(mountPoint, flags: O_RDONLY | O_DIRECTORY, label: "mount.point")
            isEmpty = try listFolder(folder, label: "mount.pointList").isEmpty
        } catch {
            switch error.errno {
            // A unit is not to try for ever to mount a domain that has gone from the configuration.
            case ENOENT where isEmbedded && !word.contains("/"):
                throw CommandFailure(
                    "'\(word)' is no domain of the configuration file, and there is no folder \(place) to mount on",
                    exitStatus: ExitStatus.usage)
            case ENOENT: throw CommandFailure("the mount point \(place) does not exist; make it with mkdir")
            case ENOTDIR: throw CommandFailure("the mount point \(place) is not a directory; give a directory")
            case EACCES, EPERM: throw CommandFailure("no permission to mount on \(place)", exitStatus: ExitStatus.refused)
            default: throw CommandFailure("the mount point \(place) cannot be opened: \(error.reason)")
            }
        }
        guard isEmpty else { throw CommandFailure("the mount point \(place) is not empty; give an empty folder") }
        // fusermount3(1) mounts only where the user may write.
        guard geteuid() == 0 || SystemMounts.isAccessible(mountPoint, W_OK) else {
            throw CommandFailure("no permission to mount on \(place); give a folder of your own", exitStatus: ExitStatus.refused)
        }
    }

    /// A mount that shows or holds its own storage would wait for itself.
    func checkOverlap() throws(CommandFailure) {
        for (what, folder) in [("the provider's folder", provider.folder), ("the state folder", stateFolder)] {
            guard let folder else { continue }
            if MountPlan.overlaps(folder, mountPoint) {
                throw CommandFailure(
                    "\(place) and \(what) \(escapedForDisplay(folder)) are inside each other; use separate folders")
            }
        }
        if let folder = provider.folder, MountPlan.overlaps(stateFolder, folder) {
            throw CommandFailure(
                "the state folder \(escapedForDisplay(stateFolder)) and the provider's folder are inside each other; give "
                    + "another with --state-dir")
        }
    }

    static func overlaps(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        func holds(_ folder: [UInt8], _ path: [UInt8]) -> Bool {
            folder == path || path.starts(with: folder.last == 0x2F ? folder : folder + [0x2F])
        }
        return holds(left, right) || holds(right, left)
    }

    private func prepareProvider() throws(CommandFailure) {
        // One that is silent is no obstacle where the domain is known, which the daemon finds out.
        guard let folder = provider.folder, !provider.isSilent else { return }
        let shown = escapedForDisplay(folder)
        do throws(SystemError) {
            if isEmbedded { try makeFolders(folder, label: "mount.embedded") }
            switch lookAtFolder(folder, flags: O_RDONLY) {
            case .found, .silent: return
            case .failed(let error): throw error
            }
        } catch {
            // Neither is one that is not there, as a disk that is not plugged in; another folder is a mistake.
            if !isEmbedded, configuration.isKnown, error.errno != ENOENT || wasMountedBefore { return }
            switch error.errno {
            case ENOENT: throw CommandFailure("the provider's folder \(shown) does not exist; make it or give another")
            case ENOTDIR: throw CommandFailure("the provider's folder \(shown) is not a folder")
            case EACCES, EPERM:
                throw CommandFailure("no permission to read the provider's folder \(shown)", exitStatus: ExitStatus.refused)
            default: throw CommandFailure("the provider's folder \(shown) cannot be opened: \(error.reason)")
            }
        }
    }

    /// The domain is known, and was on this provider.
    private var wasMountedBefore: Bool {
        (try? UnmountedDomain(stateFolder: configuration.stateFolder))?.provider == provider.text
    }

    private static func checkFuse(mountOptions: [String]) throws(CommandFailure) {
        do throws(SystemError) {
            _ = try Descriptor.open(Array("/dev/fuse".utf8), flags: O_RDWR, label: "mount.device")
        } catch {
            guard error.errno != EACCES && error.errno != EPERM else {
                throw CommandFailure(
                    "no permission to use /dev/fuse; join the group that owns it", exitStatus: ExitStatus.refused)
            }
            throw CommandFailure("there is no usable /dev/fuse (\(error.reason)); load the fuse module or install fuse3")
        }
        guard geteuid() != 0 else { return }
        guard SystemMounts.program("fusermount3") != nil else {
            throw CommandFailure("mounting as an ordinary user needs fusermount3; install fuse3")
        }
        if mountOptions.contains("allow_other"), !SystemMounts.allowsOthers() {
            throw CommandFailure("allow_other needs a line 'user_allow_other' in /etc/fuse.conf", exitStatus: ExitStatus.refused)
        }
    }
}

/// The folders of the XDG Base Directory Specification, as bytes of absolute paths.
enum BaseFolders {
    /// Nil when nobody has a home.
    static func credentials() -> [UInt8]? { settings("credentials") }

    /// The same.
    static func configuration() -> [UInt8]? { settings("config.toml") }

    private static func settings(_ name: String) -> [UInt8]? {
        settingsFolder(of: geteuid()).map { $0 + Array("/promisefs/\(name)".utf8) }
    }

    /// The settings of root are the machine's, `/etc/promisefs`, whoever's home root has at the time:
    /// what is mounted by hand has those of fstab(5) and of units. Nil when nobody has a home.
    /// `given`: the variable's value; the specification has relative ones ignored.
    static func settingsFolder(
        of user: uid_t, _ given: [UInt8]? = environmentPath("XDG_CONFIG_HOME")
    ) -> [UInt8]? {
        if let given, given.first == 0x2F { return given }
        if user == 0 { return Array("/etc".utf8) }
        return try? home(for: "XDG_CONFIG_HOME", "/.config")
    }

    static func data() throws(CommandFailure) -> [UInt8] { try folder("XDG_DATA_HOME", below: "/.local/share") }

    /// Where a domain keeps its index and content unless told otherwise.
    static func state(domain: String) throws(CommandFailure) -> [UInt8] {
        let name = Array("/\(domain)".utf8)
        if let base = environmentPath("PROMISEFS_STATE_DIR") { return base + name }
        if geteuid() == 0 { return Array("/var/lib/promisefs".utf8) + name }
        return try folder("XDG_STATE_HOME", below: "/.local/state") + Array("/promisefs".utf8) + name
    }

    /// Where what configured domains had the last time is kept. No domain's name begins with a dot.
    static func configured() throws(CommandFailure) -> [UInt8] { try state(domain: ".configured") }

    /// The specification has relative values ignored.
    private static func folder(_ variable: String, below home: String) throws(CommandFailure) -> [UInt8] {
        if let value = environmentPath(variable), value.first == 0x2F { return value }
        return try self.home(for: variable, home)
    }

    private static func home(
        for variable: String, _ home: String
    ) throws(CommandFailure) -> [UInt8] {
        if let value = environmentPath("HOME"), value.first == 0x2F { return (value == [0x2F] ? [] : value) + Array(home.utf8) }
        guard let record = getpwuid(geteuid()), let folder = record.pointee.pw_dir else {
            throw CommandFailure("there is no home folder; set HOME or \(variable)")
        }
        return Array((String(cString: folder) + home).utf8)
    }
}
