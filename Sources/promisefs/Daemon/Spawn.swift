import Glibc
import PromiseCore
import PromiseSystem

/// Starts programs with posix_spawn(3): nothing of Swift runs between fork and exec.
enum Spawn {
    /// POSIX_SPAWN_SETSID, which the Glibc module does not show.
    private static let newSessionFlag: Int16 = 0x80

    /// `descriptors`: what of this process becomes which number there; all others close. `takesSignals`: also those that the
    /// calling thread blocks, as threads of the pools do. Nil when it could not be started.
    static func start(
        _ program: [UInt8], arguments: [[UInt8]], descriptors: [(from: CInt, to: CInt)], newSession: Bool = false,
        takesSignals: Bool = false
    ) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in descriptors { posix_spawn_file_actions_adddup2(&actions, descriptor.from, descriptor.to) }
        // Libraries open sockets that exec does not close.
        let kept = max(STDERR_FILENO, descriptors.map(\.to).max() ?? 0)
        closeOthers(from: kept + 1, in: &actions)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        let flags = (newSession ? newSessionFlag : 0) | (takesSignals ? Int16(POSIX_SPAWN_SETSIGMASK) : 0)
        posix_spawnattr_setflags(&attributes, flags)
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { argument in withCPath(argument) { strdup($0) } }
        argv.append(nil)
        defer { for pointer in argv { free(pointer) } }
        var process = pid_t()
        let result = withCPath(program) { posix_spawn(&process, $0, &actions, &attributes, argv, environ) }
        return result == 0 ? process : nil
    }

    /// Runs a command with this process's standard streams and returns its status as a shell has it. `started` is called when
    /// the command runs. Blocking.
    static func run(_ words: [[UInt8]], started: () -> Void = {}) throws(CommandFailure) -> Int32 {
        let process = try begin(words, saying: nil)
        started()
        return wait(process)
    }

    /// As `run`, but what the command says is returned instead of shown. Blocking, until nobody can say anything any more.
    static func listen(to words: [[UInt8]]) throws(CommandFailure) -> (status: Int32, said: String) {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw cannotRun(words[0], errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let reading = Descriptor(adopting: ends[0])
        let writing = Descriptor(adopting: ends[1])
        let process = try begin(words, saying: writing.number)
        _ = consume writing
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(reading.number, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            said += buffer[..<min(count, max(0, saidMax - said.count))]
        }
        return (wait(process), String(decoding: said, as: UTF8.self))
    }

    private static let saidMax = 65_536

    /// `output`: where what it says goes; nil: where ours goes.
    private static func begin(_ words: [[UInt8]], saying output: CInt?) throws(CommandFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let output {
            for number in [STDOUT_FILENO, STDERR_FILENO] {
                posix_spawn_file_actions_adddup2(&actions, output, number)
            }
        }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { word in withCPath(word) { strdup($0) } }
        arguments.append(nil)
        defer { for pointer in arguments { free(pointer) } }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The threads of this process block signals; the command begins as it would without us.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        keepSocketsFromChildren()
        var process: pid_t = 0
        let problem = posix_spawnp(&process, arguments[0]!, &actions, &attributes, &arguments, environ)
        guard problem == 0 else { throw cannotRun(words[0], problem) }
        return process
    }

    /// As `run`, for a command that must not outlive this process, nor what it has started, and that gets the signals which
    /// are sent to this one.
    /// `started` is given the command's process. Blocking: the command ends with the calling thread, too.
    static func runTied(_ words: [[UInt8]], started: (pid_t) -> Void) throws(CommandFailure) -> Int32 {
        keepSocketsFromChildren()
        let (process, waiter): (pid_t, pid_t)
        do throws(SystemError) {
            (process, waiter) = try BoundProcess.startTied(words, label: "command.start")
        } catch {
            throw cannotRun(words[0], error.errno)
        }
        BoundProcess.passSignals(to: process)
        defer { BoundProcess.passSignals(to: nil) }
        started(process)
        return wait(waiter)
    }

    /// The command takes this process's place, so its exit status and its signals are the caller's to see. Returns why it
    /// could not.
    static func become(_ words: [[UInt8]]) -> CommandFailure {
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { word in withCPath(word) { strdup($0) } }
        arguments.append(nil)
        defer { for pointer in arguments { free(pointer) } }
        // The threads of the concurrent pool block signals.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        execvp(arguments[0]!, arguments)
        return cannotRun(words[0], errno)
    }

    private static func cannotRun(_ program: [UInt8], _ code: CInt) -> CommandFailure {
        CommandFailure(
            "'\(escapedForDisplay(program))' cannot be run: \(String(cString: strerror(code)))",
            exitStatus: code == ENOENT ? ShellStatus.notFound : ShellStatus.cannotRun)
    }

    /// The exit status; 128 and the signal's number when it was killed, as shells have it.
    static func wait(_ process: pid_t) -> Int32 {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return -1 }
        }
        return exitStatus(status)
    }

    /// The same; nil when it goes on after that.
    static func wait(_ process: pid_t, within limit: Duration) -> Int32? {
        var status: CInt = 0
        let end = ContinuousClock.now + limit
        while ContinuousClock.now < end {
            let result = waitpid(process, &status, WNOHANG)
            if result == process { return exitStatus(status) }
            if result < 0 && errno != EINTR { return -1 }
            usleep(10_000)
        }
        return nil
    }

    private static func exitStatus(_ status: CInt) -> Int32 {
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// As shells have them (POSIX, Shell Command Language 2.8.2).
private enum ShellStatus {
    static let cannotRun: Int32 = 126
    static let notFound: Int32 = 127
}

/// A claim ends with its connection: the command must not hold that open when this process dies.
private func keepSocketsFromChildren() {
    for number in 3..<CInt(1024) {
        var status = stat()
        // Sockets and what waits for them (epoll has no type); what the caller gave us is the command's, too.
        guard fstat(number, &status) == 0, [S_IFSOCK, 0].contains(status.st_mode & S_IFMT) else { continue }
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    }
}
