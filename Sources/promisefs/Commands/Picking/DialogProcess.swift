import Glibc
import PromiseSystem
import Synchronization

/// The program that has the desktop show a dialog. The portal takes the dialog away when that
/// program ends, which it does with this one.
final class DialogProcess: Sendable {
    private struct State {
        var process: pid_t?
        var wasEnded = false
    }

    private static let outputMax = 1 << 24

    private let state = Mutex(State())

    var wasEnded: Bool { state.withLock { $0.wasEnded } }

    /// From any thread, also before it runs.
    func end() {
        state.withLock { state in
            state.wasEnded = true
            if let process = state.process { kill(process, SIGTERM) }
        }
    }

    /// What it says, and its status as shells have it. Blocking; the program ends with the calling
    /// thread, too.
    func run(_ program: [UInt8], _ arguments: [[UInt8]]) throws(SystemError) -> ([UInt8], Int32) {
        var ends: [CInt] = [0, 0]
        _ = try call("pick.dialog") { pipe(&ends) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        let started = state.withLock { state in
            if !state.wasEnded {
                state.process = Spawn.start(
                    program, arguments: arguments,
                    descriptors: [
                        (from: nothing, to: 0), (from: ends[1], to: 1),
                        (from: STDERR_FILENO, to: 2),
                    ],
                    takesSignals: true)
            }
            return state.process
        }
        close(ends[1])
        guard let started else { return ([], 9) }
        let output = DialogProcess.rest(of: ends[0])
        let status = Spawn.wait(started)
        // From now on its number may be another one's.
        state.withLock { $0.process = nil }
        return (output, status)
    }

    private static func rest(of descriptor: CInt) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0, output.count < outputMax else { return output }
            output += buffer[..<count]
        }
    }
}
