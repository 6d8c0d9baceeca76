import CPromiseSystem
import Glibc

/// Runs programs that are not ours, with posix_spawn(3): nothing of Swift runs between fork and exec.
package enum ChildProcess {
    /// True when the program ended with status 0 within the limit; after that it is killed with what it started. It gets none
    /// of this process's files and nothing to read. `environment`: the names of the variables it gets; nil: all. Blocks.
    package static func run(
        _ arguments: [[UInt8]], environment: [String]? = nil, limit: Duration
    ) -> Bool {
        guard let program = arguments.first,
            let process = start(program, arguments, environment: environment)
        else { return false }
        return wait(for: process, until: .now + limit) == 0
    }

    /// The status as a shell has it; nil when it had to be killed.
    static func wait(for process: Int32, until deadline: ContinuousClock.Instant) -> Int32? {
        var status: CInt = 0
        while ContinuousClock.now < deadline {
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process {
                let signal = status & 0x7F
                return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
            }
            if ended < 0, errno != EINTR { return nil }
            usleep(5_000)
        }
        kill(-process, SIGKILL)
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return nil
    }

    /// `socket`: its standard input and output; nil: it has nothing to read, and nobody reads what it says.
    static func start(
        _ program: [UInt8], _ arguments: [[UInt8]], environment: [String]? = nil,
        talkingTo socket: CInt? = nil
    ) -> Int32? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for number in 0...2 as ClosedRange<CInt> {
            if let socket, number != STDERR_FILENO {
                posix_spawn_file_actions_adddup2(&actions, socket, number)
            } else {
                posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            }
        }
        // Libraries open sockets that exec does not close.
        closeOthers(from: STDERR_FILENO + 1, in: &actions)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The threads here block signals; the program begins as it would without us, in a group of its own.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { word in withCPath(word) { strdup($0) } }
        words.append(nil)
        defer { for word in words { free(word) } }
        var process: Int32 = 0
        let variables = environment.map(ChildProcess.variables) ?? []
        defer { for variable in variables { free(variable) } }
        let problem = withCPath(program) {
            environment == nil
                ? posix_spawnp(&process, $0, &actions, &attributes, words, environ)
                : posix_spawnp(&process, $0, &actions, &attributes, words, variables)
        }
        return problem == 0 ? process : nil
    }

    /// Those of this process that have these names, for the caller to free.
    private static func variables(_ names: [String]) -> [UnsafeMutablePointer<CChar>?] {
        names.compactMap { name in getenv(name).flatMap { strdup("\(name)=\(String(cString: $0))") } } + [nil]
    }
}

/// What posix_spawn(3) starts has no descriptor from that number on. The Glibc module does not show
/// the call for that. `actions`: a `posix_spawn_file_actions_t`, a type that no package declaration
/// can name: to which module it belongs depends on the order in which the compiler reads files.
package func closeOthers(from first: CInt, in actions: UnsafeMutableRawPointer) {
    cps_close_others_from(actions, first)
}
