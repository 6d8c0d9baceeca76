import ArgumentParser
import Glibc
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseSystem

/// What `doctor` looks at beyond the machine: the user's settings, clock, mounts and units. Blocking.
enum DoctorSettings {
    static func examine() -> (findings: [Finding], file: ConfigurationFile?) {
        var findings: [Finding] = []
        var file: ConfigurationFile?
        var isKnown = false
        do throws(CommandFailure) {
            file = try ConfigurationFile.readLeniently()
            findings += configuration(file)
            isKnown = file?.isReadable ?? true
        } catch {
            findings.append(configuration(error.message ?? "cannot be read"))
        }
        findings += FormerSettings.findings()
        if let file { findings += domains(of: file) }
        if let path = BaseFolders.credentials() { findings += credentials(path) }
        findings.append(clock(now: UnixTime.now, program: UnixTime.ofProgram))
        findings += DoctorMounts.examine(file)
        // Of what cannot be read nobody knows which domains it has.
        if isKnown, let folder = DoctorUnits.folder {
            findings += DoctorUnits.examine(folder, configured: file)
        }
        findings += DoctorUnits.fstab(SystemMounts.smallFile("/etc/fstab") ?? "")
        return (findings, file)
    }

    // MARK: - Settings

    /// What is wrong in it, line by line: the rest holds, and is looked at.
    static func configuration(_ file: ConfigurationFile?) -> [Finding] {
        guard let file else { return [.ok("configuration", "none; 'promisefs setup' makes one")] }
        if file.problems.isEmpty {
            return [.ok("configuration", "\(file.path): \(counted(file.domains.count, "domain"))")]
        }
        return file.problems.map { configuration($0.failure.message ?? "cannot be read") }
    }

    /// Why there is no configuration, and what to do about it.
    private static func configuration(_ message: String) -> Finding {
        let named = environment("PROMISEFS_CONFIG").map { Array($0.utf8) }
        guard let path = named ?? BaseFolders.configuration() else {
            return .problem("configuration", message, "set HOME or XDG_CONFIG_HOME")
        }
        if let command = rights(of: path, wanted: 0o022) {
            return .problem(
                "configuration", message, run: command.text, command.needsRoot ? " as root" : "")
        }
        guard DoctorFolders.status(of: path) != nil else {
            return .problem(
                "configuration", message, run: "unset PROMISEFS_CONFIG",
                ", or make the file that it names")
        }
        guard SystemMounts.isAccessible(path, R_OK) else {
            return .problem("configuration", message, run: "chmod u+r \(shellWord(path))")
        }
        return .problem("configuration", message, "mend the file as the sentence says")
    }

    /// How a file becomes this user's alone to change; nil when it is. `wanted`: what others may not have of it.
    private static func rights(of path: [UInt8], wanted: mode_t) -> (text: String, needsRoot: Bool)?
    {
        var status = stat()
        guard withCPath(path, { stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let word = shellWord(path)
        if status.st_uid != geteuid(), status.st_uid != 0 {
            return ("chown \(geteuid()) \(word)", geteuid() != 0)
        }
        guard status.st_mode & wanted != 0 else { return nil }
        return (
            wanted == 0o022 ? "chmod go-w \(word)" : "chmod 600 \(word)",
            status.st_uid != geteuid() && geteuid() != 0
        )
    }

    static func domains(of file: ConfigurationFile) -> [Finding] {
        var findings: [Finding] = []
        var places: [[UInt8]: String] = [:]
        var states: [[UInt8]: String] = [:]
        let table = try? MountTable.current()
        for (name, own) in file.domains.sorted(by: { $0.key < $1.key }) {
            let domain = file.whole(own)
            let subject = "domain \(name)"
            findings += options(of: name, in: file, subject)
            if let provider = domain.provider {
                findings += problem(of: provider, isReadOnly: domain.isReadOnly, subject)
            }
            if let certificate = domain.value(of: "--certificate") {
                findings += problem(ofCertificate: certificate, subject)
            }
            findings += state(of: name, domain, subject)
            if let folder = stateFolder(of: name, domain) {
                findings += shared(folder, "state folder", of: name, &states, "give one of them another 'state-dir'")
            }
            guard let text = domain.mountPoint else {
                findings.append(
                    .warning(
                        subject, "has no mountpoint, so nothing mounts it",
                        "add 'mountpoint = \"~/\(name)\"'"))
                continue
            }
            let place = simplified(RawArguments.bytes(of: text))
            findings += shared(place, "mountpoint", of: name, &places, "give one of them another")
            findings += mountPoint(of: name, domain, text, table, file.path)
        }
        return findings
    }

    private static func problem(ofCertificate certificate: String, _ subject: String) -> [Finding] {
        if certificate.hasPrefix("sha256:") { return [] }
        let path = Array(certificate.utf8)
        guard SystemMounts.answers(path) else {
            return [DoctorFolders.silent(path, subject, "its certificate ")]
        }
        if SystemMounts.isAccessible(path, R_OK) { return [] }
        let message = "its certificate \(certificate) cannot be read"
        return [.problem(subject, message, "mend 'certificate'")]
    }

    /// Where it is to be mounted: whether that can be.
    private static func mountPoint(
        of name: String, _ domain: ConfigurationFile.Domain, _ text: String, _ table: MountTable?, _ settings: String
    ) -> [Finding] {
        let (subject, place) = ("domain \(name)", simplified(RawArguments.bytes(of: text)))
        // What waits there for somebody to come is as good as ours.
        let mount = table?.entries.last { $0.mountPoint == place }
        let isMounted = mount.map { $0.isPromiseFS || $0.type == "autofs" } ?? false
        // One whose daemon says nothing is not looked at; what is above it may say nothing, too.
        if mount == nil, !SystemMounts.answers(place) {
            return [DoctorFolders.silent(place, subject, "its mount point ")]
        }
        if !isMounted, mount != nil {
            let message = "something else is mounted on its mount point \(escapedForDisplay(place))"
            return [.problem(subject, message, "unmount that, or mend 'mountpoint' in \(settings)")]
        }
        if !isMounted, let problem = problem(ofPlace: text, name, domain) {
            return [.problem(subject, problem, "mend 'mountpoint' in \(settings)")]
        }
        return DoctorFolders.mountPoint(place, subject, isMounted: isMounted)
    }

    /// A folder that only one domain can have; `known`: whose each is.
    private static func shared(
        _ folder: [UInt8], _ what: String, of name: String, _ known: inout [[UInt8]: String], _ remedy: String
    ) -> [Finding] {
        guard let other = known.updateValue(name, forKey: folder) else { return [] }
        return [.problem("domain \(name)", "has the \(what) of '\(other)', \(escapedForDisplay(folder))", remedy)]
    }

    /// What `mount` would refuse, before it is asked to.
    private static func options(of name: String, in file: ConfigurationFile, _ subject: String)
        -> [Finding]
    {
        guard file.domains[name]?.mountPoint != nil else { return [] }
        let command: MountCommand
        do {
            command = try MountCommand.parse(try file.words(for: [name], given: []))
        } catch {
            let message = MountCommand.message(for: error).split(separator: "\n").first.map(
                String.init)
            return [
                .problem(
                    subject, "its settings are refused: \(message ?? "\(error)")",
                    "mend them in \(file.path)")
            ]
        }
        let others = command.options.splitMountOptions.last {
            $0 == "allow_other" || $0 == "noallow_other"
        }
        if others == "allow_other", geteuid() != 0, !SystemMounts.allowsOthers() {
            return [
                .problem(
                    subject, "has allow_other, which ordinary users may not use",
                    run: Doctor.allowOthers, " as root")
            ]
        }
        return []
    }

    /// Why nothing can be mounted there, whatever is made.
    private static func problem(
        ofPlace place: String, _ name: String, _ domain: ConfigurationFile.Domain
    ) -> String? {
        guard place.hasPrefix("/") else {
            return "its mount point '\(place)' is no absolute path, and so means another folder wherever it is mounted from"
        }
        let operands = [domain.provider, place].compactMap { $0 }
        let plan = try? MountPlan(
            operands: operands, domain: name, stateFolder: stateFolder(of: name, domain))
        do throws(CommandFailure) { try plan?.checkOverlap() } catch { return error.message }
        return nil
    }

    private static func stateFolder(
        of name: String, _ domain: ConfigurationFile.Domain
    ) -> [UInt8]? {
        let given = domain.value(of: "--state-dir").map { RawArguments.bytes(of: $0) }
        return (given ?? (try? BaseFolders.state(domain: name))).map { simplified($0) }
    }

    private static func state(
        of name: String, _ domain: ConfigurationFile.Domain, _ subject: String
    ) -> [Finding] {
        let given = domain.value(of: "--state-dir")
        guard let folder = stateFolder(of: name, domain) else { return [] }
        guard SystemMounts.answers(folder) else {
            return [DoctorFolders.silent(folder, subject, "its state folder ")]
        }
        // Where all are kept together, that has been looked at, unless this one is there and differs.
        guard given != nil || DoctorFolders.status(of: folder) != nil else { return [] }
        return DoctorFolders.state(folder, of: "state folder of \(name)").filter { $0.level != .ok }
    }

    private static func problem(of provider: String, isReadOnly: Bool, _ subject: String)
        -> [Finding]
    {
        do throws(CommandFailure) {
            let name = try ProviderName(parsing: provider)
            if name.text.hasPrefix("extension+exec:") { return program(of: name.text, subject) }
            guard let folder = name.folder else { return [] }
            let (shown, word) = (escapedForDisplay(folder), shellWord(folder))
            if name.isSilent || !SystemMounts.answers(folder) {
                return [
                    .warning(subject, "its folder \(shown) does not answer", "look at the disk")
                ]
            }
            guard SystemMounts.isAccessible(folder, F_OK) else {
                return [
                    .problem(
                        subject, "its folder \(shown) does not exist", run: "mkdir -p \(word)",
                        ", or mount the disk that has it")
                ]
            }
            if DoctorFolders.status(of: folder).map({ $0.st_mode & S_IFMT }) != S_IFDIR {
                return [.problem(subject, "its folder \(shown) is not a folder", "mend 'provider'")]
            }
            guard SystemMounts.isAccessible(folder, R_OK | X_OK) else {
                return [
                    .problem(
                        subject, "its folder \(shown) may not be read by you",
                        run: "chmod u+rwx \(word)", ", by its owner")
                ]
            }
            guard isReadOnly || SystemMounts.isAccessible(folder, W_OK) else {
                return [
                    .warning(
                        subject,
                        "its folder \(shown) may not be changed by you, so nothing that is saved gets there",
                        run: "chmod u+w \(word)", ", by its owner, or 'read-only = true'")
                ]
            }
            return []
        } catch {
            return [
                .problem(
                    subject, error.message ?? "its provider is not understood", "mend 'provider'")
            ]
        }
    }

    /// `extension+exec:/PATH?ARGUMENTS`.
    private static func program(of text: String, _ subject: String) -> [Finding] {
        let path = RawArguments.bytes(
            of: String(text.dropFirst("extension+exec:".count).prefix { $0 != "?" }))
        let shown = escapedForDisplay(path)
        guard SystemMounts.answers(path) else {
            return [DoctorFolders.silent(path, subject, "its program ")]
        }
        guard SystemMounts.isAccessible(path, F_OK) else {
            return [.problem(subject, "its program \(shown) does not exist", "mend 'provider'")]
        }
        guard SystemMounts.isAccessible(path, X_OK) else {
            return [
                .problem(
                    subject, "its program \(shown) may not be run",
                    run: "chmod +x \(shellWord(path))")
            ]
        }
        return []
    }

    static func credentials(_ path: [UInt8]) -> [Finding] {
        let shown = escapedForDisplay(path)
        guard DoctorFolders.status(of: path) != nil else { return [] }
        if let command = rights(of: path, wanted: 0o077) {
            let isOwn = !command.text.hasPrefix("chown")
            let message =
                isOwn
                ? "\(shown) may be read by others, so it is not used"
                : "\(shown) belongs to another user"
            return [
                .problem(
                    "credentials", message, run: command.text, command.needsRoot ? " as root" : "")
            ]
        }
        if let message = CredentialsLook.problem(path) {
            return [
                .problem(
                    "credentials", message,
                    "mend the line, or write the entry anew by 'promisefs login DOMAIN'")
            ]
        }
        return [.ok("credentials", "\(shown) is readable by you alone")]
            + SecretService.findings(path)
    }

    // MARK: - The machine's state

    enum UnixTime {
        static var now: Int { time(nil) }
        /// When this program was made.
        static var ofProgram: Int? {
            var status = stat()
            guard let path = HelperPlace.ownPath, withCPath(path, { stat($0, &status) }) == 0 else {
                return nil
            }
            return status.st_mtim.tv_sec
        }
    }

    /// Certificates and signatures are refused, and conflicts told wrongly, where the clock is far off.
    static func clock(now: Int, program: Int?) -> Finding {
        guard let program, now < program - 86_400 else {
            return .ok("clock", "is not before this program was made")
        }
        return .problem(
            "clock", "is \(counted((program - now) / 86_400, "day")) before this program was made",
            run: "timedatectl set-ntp true", " as root sets it")
    }
}
