import CPromiseSystem
import Glibc

/// Programs that end with whoever started them.
package enum BoundProcess {
    /// Runs a program in a session of its own, with nothing open but `input` as its standard input and `output` as the other
    /// two. The kernel kills it when the calling *thread* ends (PR_SET_PDEATHSIG, prctl(2)). Throws when it cannot be run.
    package static func start(
        _ program: [UInt8], arguments: [[UInt8]], environment: [[UInt8]], input: CInt, output: CInt, label: StaticString
    ) throws(SystemError) -> Int32 {
        var words = cStrings(arguments)
        var variables = cStrings(environment)
        defer { for pointer in words + variables { free(pointer) } }
        let process = withCPath(program) { cps_start_bound($0, &words, &variables, input, output) }
        let problem = errno
        if process < -1 {
            var status: CInt = 0
            while waitpid(-process, &status, 0) < 0 && errno == EINTR {}
        }
        guard process > 0 else { throw SystemError(errno: problem, label: "\(label)") }
        return process
    }

    /// Runs a command, looked for in PATH, with this process's streams and group. It ends, with everything that it has
    /// started, when the calling *thread* does. `waiter` ends as the command did, and is what is to be waited for. Throws when
    /// it cannot be run.
    package static func startTied(
        _ words: [[UInt8]], label: StaticString
    ) throws(SystemError) -> (command: Int32, waiter: Int32) {
        var arguments = cStrings(words)
        defer { for pointer in arguments { free(pointer) } }
        var command: CInt = 0
        let waiter = try call(label) { cps_start_tied(&arguments, &command) }
        return (command, waiter)
    }

    /// Signals that processes send to this one go to `process`; nil: they do what they did at the start.
    package static func passSignals(to process: Int32?) { cps_pass_signals_on(process ?? 0) }

    /// A descriptor that poll(2) calls readable when the process has ended (pidfd_open(2)).
    package static func descriptor(of process: Int32, label: StaticString) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try call(label) { cps_process_descriptor(process) })
    }

    /// Those that end a process are told there instead; `withStops`: Ctrl-Z, and what has it go on,
    /// too. Nil: all do again what they did.
    package static func writeSignals(to descriptor: CInt?, withStops: Bool = false) {
        cps_write_signals_to(descriptor ?? -1, withStops ? 1 : 0)
    }

    /// From now on each of these signals writes its number, one byte, to `descriptor`: also one that was ignored. There is no
    /// moment in which one is lost.
    package static func write(_ signals: [CInt], to descriptor: CInt) {
        cps_write_these_signals_to(descriptor, signals, CInt(signals.count))
    }

    private static func cStrings(_ words: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
        words.map { word in withCPath(word) { strdup($0) } } + [nil]
    }
}
