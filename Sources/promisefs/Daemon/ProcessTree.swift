import Glibc
import PromiseSystem

/// A command with everything that it started.
enum ProcessTree {
    /// How long what was asked to end may take for it.
    private static let patience = Duration.seconds(5)

    /// Asks all of it to end, and ends what is left after a while.
    static func end(_ root: pid_t) async {
        let first = ProcessTable.family(of: root)
        // The command last: with it ends who does this.
        for process in first.reversed() { kill(process, SIGTERM) }
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline, first.contains(where: { kill($0, 0) == 0 }) {
            try? await Task.sleep(for: .milliseconds(50))
        }
        for process in ProcessTable.family(of: root) { kill(process, SIGKILL) }
    }
}
