import CAttributes
import Foundation
import Glibc

/// A process that outlives the one with a temporary mount, and removes the mount when that was killed.
///
/// It learns of the end by a pipe that only this process can write to.
struct TemporaryMountKeeper {
    private let root: String
    private let process: pid_t
    private let line: CInt

    /// Nil when it cannot be started: then a mount whose process is killed stays.
    init?(of root: String, _ executable: String) {
        var ends: [CInt] = [0, 0]
        guard attributes_pipe(&ends) == 0 else { return nil }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID of GNU's spawn.h: a signal to the group is not for it.
        posix_spawnattr_setflags(&attributes, 0x80)
        let options = [executable, "try", "--forget", root, "--", "-"]
        var words: [UnsafeMutablePointer<CChar>?] = options.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        guard posix_spawnp(&process, executable, &actions, &attributes, &words, environ) == 0 else {
            close(ends[1])
            return nil
        }
        (self.root, self.process, line) = (root, process, ends[1])
    }

    /// Where everything is gone it has nothing to do, and ends at once.
    func end() {
        close(line)
        let process = process
        let wait: @Sendable () -> Void = { while waitpid(process, nil, 0) < 0 && errno == EINTR {} }
        var status = stat()
        if lstat(root, &status) != 0 {
            kill(process, SIGKILL)
            return wait()
        }
        // It may take a moment, for which nobody waits.
        Thread.detachNewThread(wait)
    }
}
