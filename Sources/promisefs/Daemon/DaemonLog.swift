import Glibc
import Logging
import PromiseCore
import PromiseSystem
import PromiseWire
import Synchronization

/// Log lines on stderr: `time level message key=value…`, one write(2) each, so that lines of threads do not mix.
struct DaemonLog: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    private static let repeated = Mutex(RepeatedLines())

    /// `PROMISEFS_LOG`; `notice` when it is not set.
    static func level(_ text: String?) throws(CommandFailure) -> Logger.Level {
        guard let text else { return .notice }
        guard let level = Logger.Level(rawValue: text.lowercased()) else {
            throw CommandFailure(
                "PROMISEFS_LOG is '\(text)'; use one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))",
                exitStatus: ExitStatus.usage)
        }
        return level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let own = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let now = SystemClock().now()
        var pairs = own.map { (key: $0.key, value: $0.value.description) }
        let (message, error) = (event.message.description, event.error.map { "\($0)" })
        if event.level >= .info {
            let text = DaemonLog.line(time: nil, level: event.level, message: message, metadata: pairs, error: error)
            let (due, taken) = DaemonLog.repeated.withLock { ($0.due(at: now), $0.take(text, of: message, at: now)) }
            DaemonLog.tell(due.lines, "repeated", now)
            DaemonLog.tell(due.messages.map { ("notice \(escapedForTerminal($0.text))", $0.count) }, "further", now)
            guard let count = taken else { return }
            if count > 0 { pairs.append((key: "repeated", value: "\(count)")) }
        }
        let line = DaemonLog.line(time: now, level: event.level, message: message, metadata: pairs, error: error)
        DaemonLog.write(line)
    }

    /// What came again and was not written, when it does not come any more.
    private static func tell(_ counted: [(text: String, count: Int)], _ key: String, _ now: Timestamp) {
        for (text, count) in counted { write("\(TimeText.format(nanoseconds: now.rawValue)) \(text) \(key)=\(count)\n") }
    }

    /// A log that cannot be written must not stop the daemon.
    private static func write(_ line: String) {
        _ = Array(line.utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }

    /// Without a time it is a part of a line, with no end.
    static func line(
        time: Timestamp?, level: Logger.Level, message: String, metadata: [(key: String, value: String)], error: String?
    ) -> String {
        var parts = time.map { [TimeText.format(nanoseconds: $0.rawValue)] } ?? []
        parts += [level.rawValue, escapedForTerminal(message)]
        parts += metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\(quoted($0.value))" }
        if let error { parts.append("error=\(quoted(error))") }
        return parts.joined(separator: " ") + (time == nil ? "" : "\n")
    }

    private static func quoted(_ value: String) -> String {
        let shown = escapedForTerminal(value)
        guard shown.isEmpty || shown.contains(where: { $0 == " " || $0 == "\"" }) else { return shown }
        return "\"" + shown.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
    }
}
