import Foundation
import PromiseSystem
import Testing

/// One domain on a folder, mounted by a daemon of its own, everything below one temporary folder.
///
/// Scripts see: `$M` the mount, `$C` the provider's folder, `$S` the state folder, `$T` a folder to use, `$P` the
/// executable, `$W` the workloads, `$R` the repository.
final class MountedDomain: Sendable {
    struct Options: Sendable {
        var arguments: [String] = []
        var environment: [String: String] = [:]
        /// Short, so that tests need not wait; the default of the command line where a test is about temporary files.
        var uploadDelay = "200ms"
        /// Run before the first mount.
        var prepare = ""
        /// The provider's folder, when it is another domain's.
        var cloud: String?
        /// The provider; nil: the folder `cloud`.
        var provider: String?
    }

    /// What `status --json` says, as far as tests ask.
    struct Status: Decodable {
        let name: String
        let processID: Int32
        let connection: String
        let transport: String
        let transportMessage: String?
        let requests: [String: UInt64]
        let hasPassthrough: Bool
        let pending: Int
        let failing: Int
        let placeholders: Int
        let bytesFetched: UInt64
        let bytesUploaded: UInt64
        let cacheBytes: UInt64
        let isSupervised: Bool
        let outlivesDaemon: Bool
        let restarts: Int
        let lastEnd: String?
    }

    let root: String
    let cloud: String
    let options: Options
    var mount: String { root + "/mnt" }
    var state: String { root + "/state" }
    /// Its own: two domains of one user may not have the same.
    var domainName: String { "test" + root.suffix(6) }
    private var faults: String { root + "/faults" }

    private init(_ options: Options) throws {
        var template = Array((Machine.folder + "/pfs-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("no temporary folder in \(Machine.folder)") }
        root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        cloud = options.cloud ?? root + "/cloud"
        self.options = options
        for name in ["mnt", "state", "cloud", "tmp", "home", "run", "data", "config", "statehome"] {
            try FileManager.default.createDirectory(
                atPath: root + "/" + name, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        try setFaults([])
    }

    /// Makes the folders, mounts, runs `body`, and always cleans up. `mounts: false` leaves the first mount to the body.
    static func with(
        _ options: Options = Options(), mounts: Bool = true, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (MountedDomain) async throws -> Void
    ) async throws {
        let domain = try MountedDomain(options)
        do {
            if !options.prepare.isEmpty { try await domain.shell(options.prepare, seconds: 300, sourceLocation: sourceLocation) }
            if mounts { try await domain.remount(sourceLocation: sourceLocation) }
            try await body(domain)
            await domain.expectCleanUnmount(sourceLocation)
            await domain.cleanUp()
        } catch {
            await domain.cleanUp()
            throw error
        }
    }

    // MARK: Commands

    var environment: [String: String] {
        let result = [
            "M": mount, "C": cloud, "S": state, "T": root + "/tmp", "P": Machine.executable, "W": Machine.workloads,
            "R": Machine.repository,
            "HOME": root + "/home", "XDG_RUNTIME_DIR": root + "/run", "XDG_DATA_HOME": root + "/data",
            "XDG_CONFIG_HOME": root + "/config", "XDG_STATE_HOME": root + "/statehome", "LC_ALL": "C.UTF-8",
            // Root's domains have their state folders in /var/lib otherwise, and the next run would find them.
            "PROMISEFS_STATE_DIR": root + "/states", "PROMISEFS_PROVIDER_FAULTS": faults,
            "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1",
            // No test asks the keyring of whoever runs it.
            "DBUS_SESSION_BUS_ADDRESS": "",
            "GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_CONFIG_NOSYSTEM": "1",
        ]
        return result.merging(options.environment) { $1 }
    }

    /// Runs a script and records an issue when it does not exit as expected. `status: nil` takes any.
    @discardableResult func shell(
        _ script: String, seconds: Int = 60, status: Int32? = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ShellResult {
        let result = try await runShell(script, environment: environment, seconds: seconds, scratch: root + "/tmp")
        if let status, result.status != status {
            let reason = result.status == ShellResult.timedOut ? "did not end within \(seconds) s" : "exits \(result.status)"
            Issue.record(
                """
                a script \(reason) instead of \(status) at \(result.trace)
                err: \(result.error.suffix(3000))
                out: \(result.output.suffix(3000))
                `\(script)`
                """, sourceLocation: sourceLocation)
        }
        return result
    }

    /// The command that mounts this domain, for scripts that want to say it themselves.
    var mountCommand: String {
        let words = ["mount", "--state-dir", state, "--domain", domainName, "--upload-delay", options.uploadDelay]
        let arguments = words + Machine.transportArguments + options.arguments
        return (["\"$P\""] + (arguments + [options.provider ?? "folder:" + cloud, mount]).map { "'\($0)'" }).joined(
            separator: " ")
    }

    /// Mounts, also over what a killed daemon left. Throws when it fails, as nothing that follows would mean anything.
    func remount(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        Machine.enableRings()
        let result = try await shell(mountCommand, seconds: 60, sourceLocation: sourceLocation)
        guard result.status == 0 else { throw HarnessError("the domain was not mounted: \(result.errorText)") }
    }

    func status(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Status {
        let result = try await shell("\"$P\" status --json \"$M\"", seconds: 20, sourceLocation: sourceLocation)
        let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
        guard let domain = firstObject(in: document, having: "bytesFetched") else {
            throw HarnessError("status --json shows no domain: \(result.output)")
        }
        return try JSONDecoder().decode(Status.self, from: JSONSerialization.data(withJSONObject: domain))
    }

    /// Waits until everything is at the provider.
    func synchronize(seconds: Int = 120, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await shell("\"$P\" sync --wait \"$M\"", seconds: seconds, sourceLocation: sourceLocation)
    }

    /// Everything a user can see is the same on both sides.
    func expectProviderEqualsMount(_ arguments: String = "", sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await shell(
            "python3 \"$W/compare-trees.py\" \"$C\" \"$M\" --no-folder-times \(arguments)", seconds: 300,
            sourceLocation: sourceLocation)
    }

    // MARK: Harm

    /// Lines as `delay=2s`, `offline=true`, `hang=true`, `bandwidth=BYTES`, `only=fetchContents`; the daemon's provider obeys.
    func setFaults(_ lines: [String]) throws {
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: faults), options: .atomic)
    }

    /// Kills the daemon and its holder: nobody starts another daemon.
    func kill9() async throws {
        let daemons = daemonProcesses()
        guard !daemons.isEmpty else { throw HarnessError("there is no daemon to kill") }
        // The holder first, or it would start a successor.
        for process in daemonProcesses(of: "promisefs-holder") + daemons { kill(process, SIGKILL) }
        try await waitUntilGone()
    }

    /// Kills the daemon alone, as a crash would: its holder starts another one.
    func killDaemon() throws {
        let daemons = daemonProcesses()
        guard !daemons.isEmpty else { throw HarnessError("there is no daemon to kill") }
        for process in daemons { kill(process, SIGKILL) }
    }

    /// Processes of our executables that name our state folder. Only those are ever killed.
    func daemonProcesses(of executable: String = "promisefs") -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap(pid_t.init).filter { process in
            let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe")
            guard let program, URL(fileURLWithPath: program).lastPathComponent == executable else { return false }
            let words = readSmallFile(Array("/proc/\(process)/cmdline".utf8)) ?? []
            return String(decoding: words, as: UTF8.self).contains(root + "/")
        }
    }

    private func waitUntilGone() async throws {
        for _ in 0..<1000 {
            if daemonProcesses().isEmpty { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw HarnessError("a killed daemon is still there")
    }

    // MARK: Ending

    /// A test that is through leaves no open file behind, so unmounting works, whatever is still pending (7).
    private func expectCleanUnmount(_ sourceLocation: SourceLocation) async {
        guard !daemonProcesses().isEmpty else { return }
        do {
            try setFaults([])
            let result = try await shell("\"$P\" unmount \"$M\"", seconds: 60, status: nil, sourceLocation: sourceLocation)
            if result.status != 0 && result.status != 7 {
                Issue.record("unmount exits \(result.status): \(result.errorText)", sourceLocation: sourceLocation)
            }
        } catch {
            Issue.record("unmount: \(error)", sourceLocation: sourceLocation)
        }
    }

    private func cleanUp() async {
        for process in daemonProcesses(of: "promisefs-holder") + daemonProcesses() { kill(process, SIGKILL) }
        // Whatever is still mounted below: lazily, so that a hanging one does not stop us either.
        let script = """
            grep -o ' \(root)/[^ ]*' /proc/self/mountinfo | sort -r | while read -r place; do
                umount -l "$place" 2>/dev/null || fusermount3 -uz "$place" || true
            done
            for _ in 1 2 3 4 5; do rm -rf --one-file-system '\(root)' && break; sleep 0.2; done
            """
        _ = try? await runShell("set +eo pipefail\n" + script, seconds: 120)
    }
}

/// The first object in a JSON document, at any depth, that has a key.
func firstObject(in document: Any, having key: String) -> [String: Any]? {
    if let object = document as? [String: Any] {
        if object[key] != nil { return object }
        return object.values.lazy.compactMap { firstObject(in: $0, having: key) }.first
    }
    return (document as? [Any])?.lazy.compactMap { firstObject(in: $0, having: key) }.first
}
