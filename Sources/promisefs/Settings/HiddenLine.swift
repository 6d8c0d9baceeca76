import Glibc
import PromiseSystem

/// A line that a person types without seeing it. Blocking.
enum HiddenLine {
    /// Nil for an empty one.
    static func ask(_ question: String) -> String? {
        let line = read { Output.text("\(question): ") }
        Output.line("")
        return line.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `ask` shows the question when what is typed is shown no more: whoever answers at once is not
    /// seen. What was typed before is kept, as of one who pastes all answers.
    private static func read(asking ask: () -> Void) -> String? {
        var settings = termios()
        var ends: [CInt] = [0, 0]
        guard tcgetattr(STDIN_FILENO, &settings) == 0, pipe(&ends) == 0 else {
            ask()
            return readLine()
        }
        defer { for end in ends { close(end) } }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        let shown = settings
        settings.c_lflag &= ~tcflag_t(ECHO)
        while true {
            BoundProcess.writeSignals(to: ends[1], withStops: true)
            set(settings)
            ask()
            let signal = waitForLine(orSignal: ends[0])
            let line = signal == nil ? readLine() : nil
            // Whoever ends or stops this process finds a terminal that shows what is typed.
            set(shown)
            BoundProcess.writeSignals(to: nil)
            guard let signal else { return line }
            Output.line("")
            switch signal {
            // Who had stopped it otherwise may have changed the terminal: the question comes again.
            case SIGCONT: continue
            case SIGTSTP: stop()
            default:
                kill(getpid(), signal)
                // Another thread takes it.
                sleep(1)
                return nil
            }
        }
    }

    private static func set(_ settings: termios) {
        var settings = settings
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }

    /// The process stops here, as Ctrl-Z would have it, and goes on from here: were another thread to
    /// take the signal, what comes next would be done before.
    private static func stop() {
        var signals = sigset_t()
        var before = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &signals, &before)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    /// The signal that came first; nil when a line is there, or the end of all lines.
    private static func waitForLine(orSignal pipe: CInt) -> CInt? {
        var waits = [STDIN_FILENO, pipe].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while poll(&waits, 2, -1) < 0 { guard errno == EINTR else { return nil } }
        var number: UInt8 = 0
        return Glibc.read(pipe, &number, 1) == 1 ? CInt(number) : nil
    }
}
