import Foundation
import Glibc
import PromiseCore

/// A mount for a program's own tests, with content of their choice, that is gone afterwards with all it kept. Its
/// provider is a folder, which a test may change behind the mount's back, and can be slow, fail and be offline.
///
///     try await TemporaryMount.with(content: ["a.txt": "one"], executable: program) { mount in
///         try mount.setFaults(["offline=true"])
///         let path = mount.mountPoint + "/a.txt"
///         #expect(throws: (any Error).self) { try String(contentsOfFile: path, encoding: .utf8) }
///     }
///
/// Without `executable` the program `promisefs` is that of `PROMISEFS_EXECUTABLE` or the `PATH`. The machine needs
/// `/dev/fuse`; without root also `fusermount3`.
public struct TemporaryMount: Sendable {
    /// Where the mount is.
    public let mountPoint: String
    /// The provider's folder. What is changed here is a change that somebody else made.
    public let cloud: String
    public let domain: String
    /// The file that the provider's faults are read from, whenever it changes.
    public let faultFile: String
    private let root: String
    private let executable: String
    private static let folderPrefix = "promisefs-try-"

    /// A few documents, for those who want no particular content.
    public static let samples = [
        "Welcome.md": "# Welcome\n\nNothing of this was here before you read it.\n",
        "Reports/budget.csv": "month,amount\nJanuary,120\nFebruary,95\n",
        "Reports/Quarter one.md": "# Quarter one\n\nAll went well.\n",
    ]

    /// Mounts, runs `body`, and unmounts and removes everything, also when `body` throws. `content` is text by paths below
    /// the mount; `folder` is one whose content is copied. `options` are further options of `promisefs mount`.
    public static func with<Result>(
        content: [String: String] = samples, copying folder: String? = nil, options: [String] = [],
        executable: String? = nil, _ body: (TemporaryMount) async throws -> Result
    ) async throws -> Result {
        let program = executable ?? ProcessInfo.processInfo.environment["PROMISEFS_EXECUTABLE"] ?? "promisefs"
        let mount = try TemporaryMount(program)
        let keeper = TemporaryMountKeeper(of: mount.root, program)
        defer { keeper?.end() }
        do {
            try mount.fill(folder == nil ? content : [:], copying: folder)
            try await mount.start(options)
            let result = try await body(mount)
            try await mount.end()
            return result
        } catch {
            try? await mount.end()
            throw error
        }
    }

    private init(_ executable: String) throws(PromiseError) {
        let named = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        // What is run there may change its folder.
        let base = named.hasPrefix("/") ? named : FileManager.default.currentDirectoryPath + "/" + named
        var template = Array((base + "/" + TemporaryMount.folderPrefix + "XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw PromiseError(.local, "no folder can be made in \(base): \(String(cString: strerror(errno)))", exitStatus: 1)
        }
        let root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(root: root, executable: executable)
    }

    private init(root: String, executable: String) {
        (self.root, self.executable) = (root, executable)
        (mountPoint, cloud, faultFile) = (root + "/mount", root + "/cloud", root + "/faults")
        domain = "try-" + root.suffix(6)
    }

    /// Ends what a process has left that was killed: `root` is the folder of its mount. Does nothing to other folders.
    package static func clear(_ root: String, executable: String) async {
        var status = stat()
        guard root.split(separator: "/").last?.hasPrefix(folderPrefix) == true, lstat(root, &status) == 0,
            status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid()
        else { return }
        let mount = TemporaryMount(root: root, executable: executable)
        // It may have been killed while it mounted: that goes on without it.
        for _ in 0..<10 {
            try? await mount.end()
            try? await Task.sleep(for: .milliseconds(300))
            if !mount.isMounted, lstat(root, &status) != 0 { return }
        }
    }

    private func fill(_ content: [String: String], copying folder: String?) throws {
        let manager = FileManager.default
        try manager.createDirectory(atPath: mountPoint, withIntermediateDirectories: true)
        if let folder {
            try TemporaryMount.requireContent(folder)
            try manager.copyItem(atPath: folder, toPath: cloud)
        } else {
            try manager.createDirectory(atPath: cloud, withIntermediateDirectories: true)
        }
        for (path, text) in content {
            let parts = path.split(separator: "/")
            guard !parts.isEmpty, !path.hasPrefix("/"), !parts.contains("..") else {
                throw PromiseError(.local, "'\(path)' is no path below the mount", exitStatus: 2)
            }
            let place = URL(fileURLWithPath: cloud + "/" + path)
            try manager.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: place)
        }
        try setFaults([])
    }

    /// A folder of files, folders and links: copying a pipe would wait for who writes to it.
    private static func requireContent(_ folder: String) throws(PromiseError) {
        var status = stat()
        guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw PromiseError(.local, "'\(folder)' is no folder that can be read", exitStatus: 2)
        }
        let below = FileManager.default.enumerator(atPath: folder)
        while let name = below?.nextObject() as? String {
            guard lstat(folder + "/" + name, &status) == 0,
                ![S_IFREG, S_IFDIR, S_IFLNK].contains(status.st_mode & S_IFMT)
            else { continue }
            throw PromiseError(.local, "'\(folder)/\(name)' is no file, folder or link", exitStatus: 2)
        }
    }

    private func start(_ options: [String]) async throws(PromiseError) {
        let fixed = ["mount", "--domain", domain, "--state-dir", root + "/state", "--upload-delay", "100ms"]
        let (status, error) = await run(fixed + options + ["--", "folder:" + cloud, mountPoint])
        guard status == 0 else {
            throw PromiseError(.local, error.isEmpty ? "'\(executable)' cannot mount" : error, exitStatus: status)
        }
    }

    /// Never removes through a mount: what is mounted there still stays.
    private func end() async throws(PromiseError) {
        try? setFaults([])
        if await run(["unmount", mountPoint]).status != 0, isMounted { _ = await run(["unmount", "--lazy", mountPoint]) }
        guard !isMounted else {
            throw PromiseError(.local, "\(mountPoint) cannot be unmounted; files are open below it", exitStatus: 1)
        }
        // A daemon that was left behind by --lazy may write its last into the folder meanwhile.
        for _ in 0..<30 {
            try? FileManager.default.removeItem(atPath: root)
            if !FileManager.default.fileExists(atPath: root) { return }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private var isMounted: Bool {
        guard let table = try? MountTable.current() else { return true }
        return table.entries.contains { $0.isPromiseFS && $0.domain == domain }
    }

    // MARK: - What a test does to the provider

    /// Lines as `delay=2s`, `offline=true`, `hang=true`, `fail=3`, `bandwidth=100000`, `only=fetchContents,create`: what
    /// the provider suffers from now on. None: it is well again. A line that means nothing is an error.
    public func setFaults(_ lines: [String]) throws {
        let text = lines.map { $0 + "\n" }.joined()
        if let problem = ProviderFaults.problem(in: text) { throw PromiseError(.local, problem, exitStatus: 2) }
        try Data(text.utf8).write(to: URL(fileURLWithPath: faultFile), options: .atomic)
    }

    /// Waits until the provider has everything, and what was changed there is known here.
    public func synchronize() async throws(PromiseError) {
        let (status, error) = await run(["sync", "--wait", mountPoint])
        guard status == 0 else { throw PromiseError(.local, error, exitStatus: status) }
    }

    /// For programs that a test starts.
    public var environment: [String: String] {
        ["PROMISEFS_MOUNT": mountPoint, "PROMISEFS_CLOUD": cloud, "PROMISEFS_FAULTS": faultFile]
    }

    // MARK: - Processes

    /// Runs a command of `promisefs` apart from the user's settings and returns its status and what it said on stderr.
    private func run(_ words: [String]) async -> (status: Int32, error: String) {
        var variables = ProcessInfo.processInfo.environment
        variables["PROMISEFS_STATE_DIR"] = root + "/states"
        variables["PROMISEFS_PROVIDER_FAULTS"] = faultFile
        variables["PROMISEFS_CONFIG"] = "/dev/null"
        let (program, errors) = (executable, root + "/errors")
        let status: Int32 = await withCheckedContinuation { continuation in
            // A thread of its own: waiting must not block the pool of tasks.
            Thread.detachNewThread { [variables] in
                continuation.resume(returning: spawnAndWait([program] + words, variables, errors: errors))
            }
        }
        let said = FileManager.default.contents(atPath: errors).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let text = said.trimmingCharacters(in: .whitespacesAndNewlines)
        // Whoever shows it says who says so.
        let prefix = "promisefs: "
        return (status, text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text)
    }
}

/// posix_spawnp(3) and waitpid(2). Foundation's `Process` waits for everybody who inherited its socket, a daemon among them.
private func spawnAndWait(_ words: [String], _ variables: [String: String], errors: String) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    var environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer { for pointer in arguments + environment { free(pointer) } }
    var process = pid_t()
    guard posix_spawnp(&process, words[0], &actions, nil, &arguments, &environment) == 0 else { return 127 }
    var status: CInt = 0
    while waitpid(process, &status, 0) < 0 {
        guard errno == EINTR else { return 127 }
    }
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
}
