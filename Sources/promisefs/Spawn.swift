import Glibc
import PromiseSystem

/// Starts programs with posix_spawn(3): nothing of Swift runs between fork and exec.
enum Spawn {
    /// POSIX_SPAWN_SETSID, which the Glibc module does not show.
    private static let newSessionFlag: Int16 = 0x80

    /// `descriptors`: what of this process becomes which number there; all others close. Nil when it could not be started.
    static func start(
        _ program: [UInt8], arguments: [[UInt8]], descriptors: [(from: CInt, to: CInt)], newSession: Bool = false
    ) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in descriptors { posix_spawn_file_actions_adddup2(&actions, descriptor.from, descriptor.to) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        if newSession { posix_spawnattr_setflags(&attributes, newSessionFlag) }
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { argument in withCPath(argument) { strdup($0) } }
        argv.append(nil)
        defer { for pointer in argv { free(pointer) } }
        var process = pid_t()
        let result = withCPath(program) { posix_spawn(&process, $0, &actions, &attributes, argv, environ) }
        return result == 0 ? process : nil
    }

    /// The exit status; 128 and the signal's number when it was killed, as shells have it.
    static func wait(_ process: pid_t) -> Int32 {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return -1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}
