import Glibc
import PromiseSystem
import Synchronization

/// Shows a picker on the terminal of the process, and takes its keys: one thread of its own draws
/// and reads.
public final class TerminalPicker: Sendable {
    private let session: PickerSession
    private let machine: Mutex<PickerMachine?> = Mutex(nil)
    /// A pipe that is written to when there is something to draw, and by signals: their numbers.
    private let wake: (read: CInt, write: CInt)
    private static let draw: UInt8 = 0xFF

    public init(_ session: PickerSession) throws {
        self.session = session
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw FileWork.failure("a pipe cannot be made") }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        wake = (ends[0], ends[1])
    }

    deinit {
        close(wake.read)
        close(wake.write)
    }

    public func run(_ request: PickerRequest, hasColours: Bool) async throws -> PickerOutcome {
        let terminal = try Teletype()
        BoundProcess.writeSignals(to: wake.write)
        let thread = OwnedThread(name: "terminal") { [self] in serve(terminal, hasColours) }
        let outcome = await session.run(request) { [self] machine in
            self.machine.withLock { $0 = machine }
            // A full pipe says the same.
            var one = TerminalPicker.draw
            _ = write(wake.write, &one, 1)
        }
        try await FileWork.run { thread.join() }
        BoundProcess.writeSignals(to: nil)
        return outcome
    }

    private func serve(_ terminal: Teletype, _ hasColours: Bool) {
        terminal.begin()
        defer { terminal.end() }
        var keys = TerminalKeys()
        var screen = TerminalScreen(size: terminal.size, hasColours: hasColours)
        var shown: [String] = []
        var sight: PickerEvent?
        while true {
            // A key that begins with Escape sends the rest at once.
            let input = terminal.read(orUntil: wake.read, milliseconds: keys.isInside ? 30 : 250)
            var calls = [UInt8](repeating: 0, count: 256)
            let count = read(wake.read, &calls, calls.count)
            if let number = calls.prefix(max(0, count)).first(where: { $0 != TerminalPicker.draw }) {
                // The terminal is as it was before the signal does what it does.
                terminal.end()
                BoundProcess.writeSignals(to: nil)
                kill(getpid(), CInt(number))
                // Another thread takes it: what ends the process is the signal, not this picker.
                sleep(1)
                return session.post(.cancel)
            }
            guard let now = machine.withLock({ $0 }) else { continue }
            if now.phase == .finished { return }
            guard let input else {
                session.post(.cancel)
                return
            }
            let pressed = input.isEmpty ? keys.flush() : keys.feed(input)
            for event in screen.press(pressed, now) { session.post(event) }
            let isResized = screen.size != terminal.size
            screen.size = terminal.size
            let (lines, seen) = screen.draw(now)
            if seen != sight {
                sight = seen
                session.post(seen)
            }
            if lines != shown || isResized {
                shown = lines
                terminal.write(picture(lines, isResized))
            }
        }
    }

    private func picture(_ lines: [String], _ isResized: Bool) -> String {
        // Each line where it belongs; none is long enough to wrap.
        let rows = lines.enumerated().map { "\u{1B}[\($0.offset + 1);1H\($0.element)" }
        return (isResized ? "\u{1B}[2J" : "") + rows.joined()
    }
}
