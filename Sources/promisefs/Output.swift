import Glibc
import PromiseCore
import PromiseSystem
import PromiseWire
import Synchronization

/// What is printed, and where. Results go to stdout, problems to stderr in one sentence each.
enum Output {
    /// A path as scripts take it.
    static func bytes(_ bytes: [UInt8]) { write(bytes + [0x0A], to: STDOUT_FILENO) }
    /// The same with a NUL behind it, which no path contains.
    static func separated(_ bytes: [UInt8]) { write(bytes + [0], to: STDOUT_FILENO) }
    static func bytes(asTheyAre bytes: [UInt8]) { write(bytes, to: STDOUT_FILENO) }
    static func line(_ text: String) { write(shown(text) + "\n", to: STDOUT_FILENO) }
    static func text(_ text: String) { write(shown(text), to: STDOUT_FILENO) }
    static func json(_ document: some Encodable) { jsonLines([document]) }
    /// One object a line, all of them at once.
    static func jsonLines(_ documents: [some Encodable]) {
        write(jsonText(documents), to: STDOUT_FILENO)
    }
    /// What a terminal would obey is escaped as JSON escapes it, and never as text is.
    static func jsonText(_ documents: [some Encodable]) -> String {
        documents.map { escapedInJSON(WireCoding.text($0)) + "\n" }.joined()
    }
    /// One sentence, with `--json` an object on a line: `error` and, of what ends the command, `exitStatus`.
    static func problem(_ sentence: String, exitStatus: Int32? = nil) {
        write(problem(sentence, exitStatus), to: STDERR_FILENO)
    }

    private static func problem(_ sentence: String, _ exitStatus: Int32?) -> [UInt8] {
        let text =
            problemsAreJSON
            ? escapedInJSON(WireCoding.text(Problem(error: sentence, exitStatus: exitStatus)))
            : "promisefs: \(escapedForTerminal(sentence))"
        return Array((text + "\n").utf8)
    }

    private struct Problem: Encodable {
        var error: String
        var exitStatus: Int32?
    }

    /// For a person, beside what a script reads.
    static func note(_ sentence: String) { write("promisefs: \(escapedForTerminal(sentence))\n", to: STDERR_FILENO) }

    /// What was followed is over, and nothing is wrong.
    static func unmounted(_ domain: String) {
        let sentence = "the domain '\(domain)' was unmounted"
        if problemsAreJSON { problem(sentence, exitStatus: 0) } else { note(sentence) }
    }

    /// `--json` was given.
    static var problemsAreJSON: Bool {
        get { hasJSON.load(ordering: .relaxed) }
        set { hasJSON.store(newValue, ordering: .relaxed) }
    }
    private static let hasJSON = Atomic<Bool>(false)

    /// The line that is shown now goes.
    static func clearLine() { write("\r\u{1B}[K", to: STDOUT_FILENO) }

    static func clearScreen() { write("\u{1B}[H\u{1B}[J", to: STDOUT_FILENO) }

    private static func shown(_ text: String) -> String {
        escapedForTerminal(text, keepsLines: true, keepsColours: Terminal.hasColours)
    }

    /// What `body` would print as results is not printed: it is a part of another command.
    static func withoutResults<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        isQuiet.store(true, ordering: .relaxed)
        defer { isQuiet.store(false, ordering: .relaxed) }
        return try await body()
    }
    private static let isQuiet = Atomic<Bool>(false)

    /// Whoever changes something goes on when nobody takes what it says: what it has begun is done.
    static func goesOnWithoutReader() {
        signal(SIGPIPE, SIG_IGN)
        endsUnwritten.store(false, ordering: .relaxed)
    }
    private static let endsUnwritten = Atomic<Bool>(true)

    /// Ends the process quietly when the reader has gone (`| head`): there is nobody left to tell. Where results cannot be
    /// written for another reason, it says so, and ends with status 1.
    private static func write(_ text: String, to descriptor: CInt) { write(Array(text.utf8), to: descriptor) }

    private static let turn = Mutex(())
    private static let partingMax: UInt32 = 500_000

    /// Nothing is written any more. A reader that takes nothing is not waited for.
    static func finish() {
        var waited: UInt32 = 0
        while waited < partingMax {
            if turn.withLockIfAvailable({ _ in isFinished.store(true, ordering: .relaxed) }) != nil { return }
            usleep(partingMax / 100)
            waited += partingMax / 100
        }
    }
    private static let isFinished = Atomic<Bool>(false)

    private static func write(_ bytes: [UInt8], to descriptor: CInt) {
        if descriptor == STDOUT_FILENO, isQuiet.load(ordering: .relaxed) { return }
        turn.withLock { _ in
            if !isFinished.load(ordering: .relaxed) { writeAll(bytes, to: descriptor) }
        }
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: CInt) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && descriptor == STDOUT_FILENO && errno == EPIPE {
                if endsUnwritten.load(ordering: .relaxed) { exit(0) }
                return
            }
            if count < 0 && errno == EAGAIN {
                var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waited, 1, -1)
                continue
            }
            guard count > 0 else {
                let reason = SystemError(errno: errno, label: "output.write").reason
                guard descriptor == STDOUT_FILENO, endsUnwritten.load(ordering: .relaxed) else { return }
                let sentence = "the output cannot be written: \(reason)"
                writeAll(problem(sentence, ExitStatus.failed), to: STDERR_FILENO)
                exit(ExitStatus.failed)
            }
            rest = rest.dropFirst(count)
        }
    }
}

/// What the terminal can do. Colours and bars only where somebody looks at them.
enum Terminal {
    static let isOutput = isatty(STDOUT_FILENO) == 1
    /// https://no-color.org: any non-empty value turns colours off.
    static let hasColours = isOutput && environment("NO_COLOR") == nil && environment("TERM") != "dumb"

    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    static func styled(_ text: String, _ style: Style) -> String {
        hasColours ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Columns; 80 when it cannot be known.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

/// A variable of the environment; nil when it is not set or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The same of a path, which need not be text.
func environmentPath(_ name: String) -> [UInt8]? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) }
}

/// Rows with their columns aligned; the last column is not padded.
func table(_ rows: [[String]]) -> String {
    // What strangers wrote begins no line of its own.
    let rows = rows.map { $0.map { escapedForTerminal($0, keepsColours: Terminal.hasColours) } }
    var widths: [Int] = []
    for row in rows {
        for (column, cell) in row.enumerated() {
            if column == widths.count { widths.append(0) }
            widths[column] = max(widths[column], cell.count)
        }
    }
    return rows.map { row in
        row.enumerated().map { column, cell in
            column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count + 2)
        }.joined() + "\n"
    }.joined()
}

/// `1 item`, `3 items`.
func counted(_ number: Int, _ noun: String) -> String { number == 1 ? "1 \(noun)" : "\(number) \(noun)s" }
