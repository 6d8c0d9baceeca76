import Glibc
import PromiseCore
import PromiseSystem

/// The picker in a terminal's window, for whoever has neither a terminal nor a browser: the desktop's
/// portal. The same command runs there, and what it says is what this one says.
struct PickWindow {
    private static let look = Duration.milliseconds(50)
    /// So long a window may take to begin.
    private static let patience = Duration.seconds(10)

    /// Each with what goes before a command. What `$TERMINAL` names is asked first.
    private static let terminals: [[String]] = [
        ["x-terminal-emulator", "-e"], ["foot"], ["kitty"], ["alacritty", "-e"], ["konsole", "-e"],
        ["gnome-terminal", "--wait", "--"], ["xfce4-terminal", "--disable-server", "-x"], ["xterm", "-e"],
    ]

    /// The shell notes its number, which is the picker's, and how that has ended.
    private static let script = """
        echo $$ > "$0/process"; "$@" > "$0/output"; echo $? > "$0/status.new"; mv "$0/status.new" "$0/status"
        """

    /// A terminal. When it has ended and was asked for, its number may be another process's.
    private struct Window {
        let process: pid_t
        private var isAskedFor = false

        init(_ process: pid_t) { self.process = process }

        mutating func hasEnded() -> Bool {
            if !isAskedFor { isAskedFor = waitpid(process, nil, WNOHANG) != 0 }
            return isAskedFor
        }

        mutating func end() {
            if hasEnded() { return }
            kill(process, SIGTERM)
            while waitpid(process, nil, 0) < 0 && errno == EINTR {}
            isAskedFor = true
        }
    }

    /// The words of this process, but for where the picker is shown.
    private let words: [[UInt8]]
    private let own: [UInt8]

    init?() {
        guard let own = HelperPlace.ownPath else { return nil }
        self.own = own
        words = RawArguments.ofProcess().dropFirst().filter { $0 != "--web" }
            .map { RawArguments.bytes(of: $0) } + [Array("--terminal".utf8)]
    }

    /// What it printed, and its exit status. Nil where no window could be had.
    func run() async throws -> (output: [UInt8], status: Int32)? {
        let folder = try await Blocking.run { () throws(SystemError) in try PickWindow.makeFolder() }
        defer { PickWindow.remove(folder) }
        let named = environment("TERMINAL").map { [[$0, "-e"]] } ?? []
        for terminal in named + PickWindow.terminals {
            guard let process = start(terminal, folder) else { continue }
            var window = Window(process)
            defer { window.end() }
            if let found = try await result(folder, &window) { return found }
        }
        return nil
    }

    private func start(_ terminal: [String], _ folder: [UInt8]) -> pid_t? {
        guard let program = PickWindow.find(terminal[0]) else { return nil }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        let shell = (terminal + ["/bin/sh", "-c", PickWindow.script]).map { Array($0.utf8) }
        return Spawn.start(
            program, arguments: shell + [folder, own] + words,
            descriptors: [(from: nothing, to: 0), (from: nothing, to: 1)], newSession: true)
    }

    /// Nil when no window came.
    private func result(
        _ folder: [UInt8], _ window: inout Window
    ) async throws -> ([UInt8], Int32)? {
        let end = ContinuousClock.now + PickWindow.patience
        while true {
            if let status = PickWindow.number(folder, "status") {
                let output = readSmallFile(folder + Array("/output".utf8), countMax: 1 << 24) ?? []
                return (output, status)
            }
            // Some terminals hand the window to a server of theirs and end.
            let hasEnded = window.hasEnded()
            if let process = PickWindow.number(folder, "process") {
                if kill(process, 0) != 0 {
                    // It may just have said how.
                    try await Task.sleep(for: PickWindow.look)
                    if PickWindow.number(folder, "status") == nil { return ([], 9) }
                }
            } else if hasEnded || ContinuousClock.now > end {
                return nil
            }
            do {
                try await Task.sleep(for: PickWindow.look)
            } catch {
                if let process = PickWindow.number(folder, "process") { kill(process, SIGTERM) }
                throw error
            }
        }
    }

    private static func number(_ folder: [UInt8], _ name: String) -> Int32? {
        readSmallFile(folder + Array("/\(name)".utf8)).flatMap {
            Int32(String(decoding: $0.filter { $0 != 0x0A }, as: UTF8.self))
        }
    }

    /// As execvp(3) finds it.
    private static func find(_ name: String) -> [UInt8]? {
        let path = environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin"
        let places = name.contains("/") ? [name] : path.split(separator: ":").map { "\($0)/\(name)" }
        return places.first { access($0, X_OK) == 0 }.map { Array($0.utf8) }
    }

    private static func makeFolder() throws(SystemError) -> [UInt8] {
        let parent = environment("XDG_RUNTIME_DIR") ?? environment("TMPDIR") ?? "/tmp"
        let folder = Array("\(parent)/promisefs-window-\(getpid())".utf8)
        _ = try call("pick.window") { withCPath(folder) { mkdir($0, 0o700) } }
        return folder
    }

    private static func remove(_ folder: [UInt8]) {
        for name in ["process", "output", "status.new", "status"] {
            _ = withCPath(folder + Array("/\(name)".utf8)) { unlink($0) }
        }
        _ = withCPath(folder) { rmdir($0) }
    }
}
