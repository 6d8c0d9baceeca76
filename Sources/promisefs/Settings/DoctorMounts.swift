import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

/// What `doctor` looks at of what is mounted. Only whoever made a mount can say anything about it.
enum DoctorMounts {
    private static func own() -> [MountEntry] {
        guard let table = try? MountTable.current() else { return [] }
        return table.promiseMounts(of: geteuid())
    }

    /// Blocking.
    static func examine(_ file: ConfigurationFile?) -> [Finding] {
        own().compactMap { entry in
            let (place, word) = (escapedForDisplay(entry.mountPoint), shellWord(entry.mountPoint))
            if AbandonedMount.isOne(entry) {
                return .warning(
                    "mount \(place)", "has lost its daemon and its holder, and programs wait for them",
                    run: "promisefs unmount \(word)", ", or mount it again")
            }
            switch SystemMounts.probe(entry.mountPoint) {
            case .alive: return nil
            case .dead:
                guard file?.domains[entry.domain]?.mountPoint != nil else {
                    return .warning(
                        "mount \(place)", "has lost its daemon", run: "promisefs unmount \(word)",
                        ", or mount it again")
                }
                return .warning(
                    "mount \(place)", "has lost its daemon", run: "promisefs mount \(entry.domain)")
            case .silent:
                return withoutDaemon(entry, .warning, "does not answer", run: "promisefs unmount --lazy \(word)")
            }
        }
    }

    /// Whom commands reach, and whether an upgrade has left a mount behind.
    static func versions() async -> [Finding] {
        var findings: [Finding] = []
        let entries = await Blocking.run { () throws(Never) in
            own().filter { SystemMounts.probe($0.mountPoint) == .alive }
        }
        for entry in entries {
            let (place, word) = (escapedForDisplay(entry.mountPoint), shellWord(entry.mountPoint))
            do {
                let status = try await PromiseClient(mount: entry).status()
                if let moved = MovedDomain(status) {
                    findings.append(.warning("mount \(place)", moved.news, run: moved.command))
                }
                let version = status.version ?? "an older version"
                if version != programVersion {
                    let message = "is served by \(version), and this program is \(programVersion)"
                    // Where nothing can go on meanwhile, a restart is refused.
                    findings.append(
                        status.outlivesDaemon
                            ? .warning("mount \(place)", message, run: "promisefs restart \(word)")
                            : .warning(
                                "mount \(place)", message, run: "promisefs unmount \(word)",
                                ", and mount it again"))
                }
            } catch {
                let message = "serves files, and no command reaches its daemon: its socket has gone"
                findings.append(
                    withoutDaemon(entry, .problem, message, run: "promisefs unmount \(word)", ", and mount it again"))
            }
        }
        return findings
    }

    /// Of a daemon that is of no use: another takes its place, where it can be found.
    private static func withoutDaemon(
        _ entry: MountEntry, _ level: Finding.Level, _ message: String, run command: String, _ more: String = ""
    ) -> Finding {
        let daemon = MountProcesses.daemon(of: entry.mountPoint)
        let (command, more) = daemon.map { ("kill -9 \($0)", "; a new daemon takes its place") } ?? (command, more)
        return Finding(
            level: level, subject: "mount \(escapedForDisplay(entry.mountPoint))", message: message,
            remedy: "'\(command)'\(more)", command: command)
    }
}
