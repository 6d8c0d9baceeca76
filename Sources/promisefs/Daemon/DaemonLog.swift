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
            let text = DaemonLog.line(time: .zero, level: event.level, message: message, metadata: pairs, error: error)
            guard let count = DaemonLog.repeated.withLock({ $0.take(text, at: now) }) else { return }
            if count > 0 { pairs.append((key: "repeated", value: "\(count)")) }
        }
        let line = DaemonLog.line(time: now, level: event.level, message: message, metadata: pairs, error: error)
        let bytes = Array(line.utf8)
        // A log that cannot be written must not stop the daemon.
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }

    static func line(
        time: Timestamp, level: Logger.Level, message: String, metadata: [(key: String, value: String)], error: String?
    ) -> String {
        var parts = [TimeText.format(nanoseconds: time.rawValue), level.rawValue, escapedForTerminal(message)]
        parts += metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\(quoted($0.value))" }
        if let error { parts.append("error=\(quoted(error))") }
        return parts.joined(separator: " ") + "\n"
    }

    private static func quoted(_ value: String) -> String {
        let shown = escapedForTerminal(value)
        guard shown.isEmpty || shown.contains(where: { $0 == " " || $0 == "\"" }) else { return shown }
        return "\"" + shown.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
    }
}
