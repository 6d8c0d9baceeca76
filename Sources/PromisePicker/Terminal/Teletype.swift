import Glibc
import PromiseKit
import Synchronization

/// The terminal of a person, whatever stdin and stdout are.
final class Teletype: Sendable {
    private let descriptor: CInt
    private let before: Mutex<termios?> = Mutex(nil)

    /// Throws when there is none.
    init() throws {
        descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            throw PromiseError(
                .local,
                "there is no terminal to pick in; try --web, or --plain with lines on stdin",
                exitStatus: 1)
        }
    }

    deinit { close(descriptor) }

    var size: TerminalScreen.Size {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0,
            window.ws_row > 0
        else {
            return TerminalScreen.Size(columns: 80, rows: 24)
        }
        return TerminalScreen.Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
    }

    /// Keys come one by one, and the screen is ours: the other one comes back afterwards.
    func begin() {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return }
        before.withLock { $0 = settings }
        cfmakeraw(&settings)
        tcsetattr(descriptor, TCSAFLUSH, &settings)
        // What it takes for wider than we do goes to no other line.
        write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[2J")
    }

    func end() {
        guard var settings = before.withLock({ $0 }) else { return }
        write("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        tcsetattr(descriptor, TCSADRAIN, &settings)
    }

    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// What came within so long, also by `other` becoming readable: empty for nothing, nil for the
    /// end.
    func read(orUntil other: CInt, milliseconds: CInt) -> [UInt8]? {
        var waits = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&waits, 2, milliseconds) > 0 else { return [] }
        guard waits[0].revents != 0 else { return [] }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count < 0 && (errno == EINTR || errno == EAGAIN) { return [] }
        return count > 0 ? Array(buffer[..<count]) : nil
    }
}
