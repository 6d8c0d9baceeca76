import Glibc
import PromiseCore
import PromiseSystem

/// What `doctor` looks at of what mounts by itself: units of systemd and fstab(5). Blocking.
enum DoctorUnits {
    private static let template = "promisefs@.service"

    /// Where systemd keeps what is enabled.
    static var folder: [UInt8]? {
        if geteuid() == 0 { return Array("/etc/systemd/system/multi-user.target.wants".utf8) }
        guard let settings = BaseFolders.configuration() else { return nil }
        return settings.dropLast("/promisefs/config.toml".utf8.count)
            + Array("/systemd/user/default.target.wants".utf8)
    }

    /// A unit whose domain has gone fails at each start, and nobody hears of it. Root's units have settings of their own.
    static func examine(_ folder: [UInt8], configured file: ConfigurationFile?) -> [Finding] {
        guard
            let opened = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "doctor.units"),
            let entries = try? listFolder(opened, label: "doctor.unitList")
        else { return [] }
        let domains = file?.domains ?? [:]
        return entries.compactMap { entry in
            let name = String(decoding: entry.name, as: UTF8.self)
            guard name.hasPrefix("promisefs@"), name.hasSuffix(".service") else { return nil }
            let domain = String(name.dropFirst(10).dropLast(8))
            if domains[domain]?.mountPoint != nil {
                return self.unit(name, domain, link: folder + Array("/".utf8) + entry.name)
            }
            // What is wrong with it is said elsewhere, and the domain is wanted.
            if file?.problems.contains(where: { $0.domain == domain }) == true { return nil }
            // Those of the machine have the machine's settings, whatever was looked at.
            if geteuid() == 0, BaseFolders.settingsFolder(of: 0) != Array("/etc".utf8) { return nil }
            return .problem(
                "unit", "\(name) is enabled, and the configuration has no such domain to mount",
                run: "promisefs disable \(domain)")
        }
    }

    private static func unit(_ name: String, _ domain: String, link: [UInt8]) -> Finding {
        let scope = geteuid() == 0 ? "" : "--user "
        guard SystemMounts.isAccessible(link, F_OK) else {
            guard isThereATemplate else {
                return .problem(
                    "unit", "\(name) is enabled, and the file \(template) is missing",
                    run: "apt install --reinstall promisefs",
                    " as root")
            }
            return .problem(
                "unit", "\(name) is enabled by a link to a file that has gone",
                run: "systemctl \(scope)reenable \(name)")
        }
        guard ServiceUnit.isManaged else { return .ok("unit", "\(domain) is mounted by itself") }
        if state("is-failed", name) {
            return .problem(
                "unit", "\(name) has failed; 'journalctl \(scope)-u \(name)' says why",
                run: "systemctl \(scope)restart \(name)",
                " when that is mended")
        }
        guard state("is-active", name) else {
            return .warning(
                "unit", "\(name) is enabled, and does not run",
                run: "systemctl \(scope)start \(name)")
        }
        return .ok("unit", "\(domain) is mounted by itself")
    }

    private static func state(_ question: String, _ name: String) -> Bool {
        let words =
            ["systemctl"] + (geteuid() == 0 ? [] : ["--user"]) + ["--quiet", question, name]
        return ChildProcess.run(words.map { Array($0.utf8) }, limit: .seconds(5))
    }

    private static var isThereATemplate: Bool {
        let kind = geteuid() == 0 ? "system" : "user"
        let places = [
            "/etc/systemd/", "/usr/local/lib/systemd/", "/usr/lib/systemd/", "/lib/systemd/",
        ]
        return places.contains {
            SystemMounts.isAccessible(Array("\($0)\(kind)/\(template)".utf8), F_OK)
        }
    }

    // MARK: - fstab

    /// Lines of ours that mount(8) could not carry out.
    static func fstab(_ text: String) -> [Finding] {
        var findings: [Finding] = []
        let lines = text.split(separator: "\n").map {
            $0.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        }
        let ours = lines.filter {
            $0.count >= 4 && $0[0].first != "#" && ["promisefs", "fuse.promisefs"].contains($0[2])
        }
        for fields in ours {
            let (place, helper) = (fields[1], "mount.\(fields[2])")
            if !["/usr/sbin", "/sbin"].contains(where: {
                SystemMounts.isAccessible(Array("\($0)/\(helper)".utf8), X_OK)
            }) {
                let own = HelperPlace.ownPath ?? Array("/usr/bin/promisefs".utf8)
                findings.append(
                    .problem(
                        "fstab", "/usr/sbin/\(helper) is missing, and mount(8) mounts by it",
                        run: "ln -s \(shellWord(own)) /usr/sbin/\(helper)", " as root"))
            }
            do throws(CommandFailure) {
                let call = try MountHelper.parse([fields[0], place, "-o", fields[3]])
                if call.source.contains(":") { _ = try ProviderName(parsing: call.source) }
            } catch {
                let message = "\(place): \(error.message ?? "its line is wrong")"
                findings.append(.problem("fstab", message, "mend the line in /etc/fstab"))
            }
            if let finding = mountPoint(unescaped(place), place) { findings.append(finding) }
        }
        return findings
    }

    private static func mountPoint(_ path: [UInt8], _ place: String) -> Finding? {
        guard SystemMounts.answers(path) else {
            return .warning(
                "fstab", "the mount point \(place) does not answer", "look at what is mounted there")
        }
        guard DoctorFolders.status(of: path) == nil, errno == ENOENT else { return nil }
        return .problem(
            "fstab", "the mount point \(place) does not exist",
            run: "mkdir -p \(shellWord(path))", " as root")
    }

    /// fstab(5) has `\040` for a space.
    private static func unescaped(_ field: String) -> [UInt8] {
        var result: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(3), as: UTF8.self)
            if byte == UInt8(ascii: "\\"), digits.utf8.count == 3,
                let value = UInt8(digits, radix: 8)
            {
                result.append(value)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
