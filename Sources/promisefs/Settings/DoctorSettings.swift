import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// What `doctor` looks at beyond the machine: the user's settings, clock, mounts and units. Blocking.
enum DoctorSettings {
    static func examine() -> [Finding] {
        var findings: [Finding] = []
        var file: ConfigurationFile?
        do throws(CommandFailure) {
            file = try ConfigurationFile.read()
            let known = file.map { "\($0.path): \(counted($0.domains.count, "domain"))" }
            findings.append(.ok("configuration", known ?? "none; 'promisefs setup' makes one"))
        } catch {
            findings.append(.problem("configuration", error.message ?? "cannot be read", "mend the file; its line is named"))
        }
        if let file { findings += domains(of: file) }
        if let path = BaseFolders.credentials() { findings += credentials(path) }
        findings.append(clock(now: UnixTime.now, program: UnixTime.ofProgram))
        findings += mounts()
        if let folder = unitFolder { findings += units(folder, configured: file) }
        return findings
    }

    // MARK: - Settings

    static func domains(of file: ConfigurationFile) -> [Finding] {
        var findings: [Finding] = []
        var places: [String: String] = [:]
        for (name, domain) in file.domains.sorted(by: { $0.key < $1.key }) {
            let subject = "domain \(name)"
            guard let place = domain.mountPoint else {
                findings.append(.warning(subject, "has no mountpoint, so nothing mounts it", "add 'mountpoint = \"~/\(name)\"'"))
                continue
            }
            if let other = places[place] {
                findings.append(.problem(subject, "has the mountpoint of '\(other)', \(place)", "give one of them another"))
            }
            places[place] = name
            if let provider = domain.provider { findings += problem(of: provider, subject) }
            let bytes = RawArguments.bytes(of: place)
            var status = stat()
            // A dead mount answers ENOTCONN, which is found below.
            if withCPath(bytes, { lstat($0, &status) }) != 0, errno == ENOENT {
                findings.append(.problem(subject, "its mount point \(place) does not exist", "'mkdir -p \(place)'"))
            }
        }
        return findings
    }

    private static func problem(of provider: String, _ subject: String) -> [Finding] {
        do throws(CommandFailure) {
            let name = try ProviderName(parsing: provider)
            guard let folder = name.folder else { return [] }
            if name.isSilent {
                return [.warning(subject, "its folder \(escapedForDisplay(folder)) does not answer", "look at the disk")]
            }
            guard SystemMounts.isAccessible(folder, F_OK) else {
                let shown = escapedForDisplay(folder)
                return [.problem(subject, "its folder \(shown) does not exist", "make it, or mount the disk that has it")]
            }
            return []
        } catch {
            return [.problem(subject, error.message ?? "its provider is not understood", "mend 'provider'")]
        }
    }

    static func credentials(_ path: [UInt8]) -> [Finding] {
        let shown = escapedForDisplay(path)
        var status = stat()
        guard withCPath(path, { stat($0, &status) }) == 0 else { return [] }
        guard status.st_uid == geteuid() else {
            return [.problem("credentials", "\(shown) belongs to another user", "'chown \(geteuid()) \(shown)'")]
        }
        guard status.st_mode & 0o077 == 0 else {
            return [.problem("credentials", "\(shown) may be read by others, so it is not used", "'chmod 600 \(shown)'")]
        }
        return [.ok("credentials", "\(shown) is readable by you alone")]
    }

    // MARK: - The machine's state

    enum UnixTime {
        static var now: Int { time(nil) }
        /// When this program was made.
        static var ofProgram: Int? {
            var status = stat()
            guard let path = HelperPlace.ownPath, withCPath(path, { stat($0, &status) }) == 0 else { return nil }
            return status.st_mtim.tv_sec
        }
    }

    /// Certificates and signatures are refused, and conflicts told wrongly, where the clock is far off.
    static func clock(now: Int, program: Int?) -> Finding {
        guard let program, now < program - 86_400 else { return .ok("clock", "is not before this program was made") }
        return .problem(
            "clock", "is \(counted((program - now) / 86_400, "day")) before this program was made",
            "set it: 'timedatectl set-ntp true'")
    }

    /// Only whoever made a mount can say anything about it.
    private static func mounts() -> [Finding] {
        guard let table = try? MountTable.current() else { return [] }
        return table.promiseMounts.filter { $0.user == geteuid() }.compactMap { entry in
            let place = escapedForDisplay(entry.mountPoint)
            switch SystemMounts.probe(entry.mountPoint) {
            case .alive: return nil
            case .dead:
                return .warning("mount \(place)", "has lost its daemon", "mount it again, or 'promisefs unmount \(place)'")
            case .silent:
                return .warning("mount \(place)", "does not answer", "'promisefs restart \(place)', or unmount with --lazy")
            }
        }
    }

    /// Where systemd keeps what is enabled.
    private static var unitFolder: [UInt8]? {
        if geteuid() == 0 { return Array("/etc/systemd/system/multi-user.target.wants".utf8) }
        guard let settings = BaseFolders.configuration() else { return nil }
        return settings.dropLast("/promisefs/config.toml".utf8.count) + Array("/systemd/user/default.target.wants".utf8)
    }

    /// A unit whose domain has gone fails at each start, and nobody hears of it. Root's units have settings of their own.
    static func units(_ folder: [UInt8], configured file: ConfigurationFile?) -> [Finding] {
        guard let opened = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "doctor.units"),
            let entries = try? listFolder(opened, label: "doctor.unitList")
        else { return [] }
        let domains = file?.domains ?? [:]
        return entries.compactMap { entry in
            let name = String(decoding: entry.name, as: UTF8.self)
            guard name.hasPrefix("promisefs@"), name.hasSuffix(".service") else { return nil }
            let domain = String(name.dropFirst(10).dropLast(8))
            if domains[domain]?.mountPoint != nil { return .ok("unit", "\(domain) is mounted by itself") }
            if geteuid() == 0, environment("XDG_CONFIG_HOME") != "/etc" { return nil }
            return .problem(
                "unit", "\(name) is enabled, and the configuration has no such domain to mount", "'promisefs disable \(domain)'")
        }
    }
}
