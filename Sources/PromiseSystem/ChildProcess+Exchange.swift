import CPromiseSystem
import Glibc

extension ChildProcess {
    /// What a program said, and its status as a shell has it.
    package struct Exchange: Sendable, Equatable {
        package var status: Int32
        package var output: [UInt8]
    }

    /// Gives a program a short text to read, and takes what it writes to its standard output, at most 64 KiB. Nil when it could
    /// not be started, or did not end within the limit: then it is killed with what it started. Blocks.
    package static func exchange(_ arguments: [[UInt8]], input: [UInt8] = [], limit: Duration)
        -> Exchange?
    {
        // A socket, so that writing to a program that has ended is an error and no signal.
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { return nil }
        let own = Descriptor(adopting: ends[0])
        let others = Descriptor(adopting: ends[1])
        guard let program = arguments.first,
            let process = start(program, arguments, talkingTo: others.number)
        else { return nil }
        _ = consume others
        _ = input.withUnsafeBytes { send(own.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        shutdown(own.number, CInt(SHUT_WR))
        let deadline = ContinuousClock.now + limit
        let output = read(own.number, until: deadline)
        return wait(for: process, until: deadline).map { Exchange(status: $0, output: output) }
    }

    /// Until nothing more comes.
    private static func read(_ socket: CInt, until deadline: ContinuousClock.Instant) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while output.count < 65_536 {
            let left = deadline - .now
            guard left > .zero else { return output }
            var question = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&question, 1, CInt(clamping: left.components.seconds * 1000 + 100)) > 0
            else { continue }
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        return output
    }

    /// Nil when it had to be killed.
    private static func wait(for process: pid_t, until deadline: ContinuousClock.Instant) -> Int32?
    {
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

    private static func start(_ program: [UInt8], _ arguments: [[UInt8]], talkingTo socket: CInt)
        -> pid_t?
    {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_RDWR, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { word in
            withCPath(word) { strdup($0) }
        }
        words.append(nil)
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let problem = withCPath(program) {
            posix_spawnp(&process, $0, &actions, &attributes, words, environ)
        }
        return problem == 0 ? process : nil
    }
}
