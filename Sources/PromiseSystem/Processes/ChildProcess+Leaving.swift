import Glibc

extension ChildProcess {
    /// How a program that may never end has fared.
    package enum Fate: Sendable, Equatable {
        case ended(Int32)
        /// It has been told to end, and nobody waits for that: its call may be one that nothing interrupts.
        case left
        case notStarted
    }

    /// Runs a program in a session of its own, and leaves it behind when it has not ended within the limit. A thread that asks
    /// a mount whose daemon hangs keeps its whole process from ending; a process that is left keeps nobody. Blocks.
    package static func runOrLeave(_ arguments: [[UInt8]], limit: Duration) -> Fate {
        guard let program = arguments.first, let process = start(program, arguments) else {
            return .notStarted
        }
        let deadline = ContinuousClock.now + limit
        var status: CInt = 0
        var pause: UInt32 = 500
        while ContinuousClock.now < deadline {
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process {
                let signal = status & 0x7F
                return .ended(signal == 0 ? (status >> 8) & 0xFF : 128 + signal)
            }
            if ended < 0, errno != EINTR { return .left }
            usleep(pause)
            pause = min(pause * 2, 20_000)
        }
        kill(-process, SIGKILL)
        takeLeave(of: process)
        return .left
    }

    /// Nobody waits for it, and yet its number is given back when it ends: a parent that lives on,
    /// and asks which of its children has ended, would meet this one for ever.
    private static func takeLeave(of process: pid_t) {
        let thread = OwnedThread(name: "left-child") {
            var status: CInt = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
        }
        thread.detach()
    }
}
