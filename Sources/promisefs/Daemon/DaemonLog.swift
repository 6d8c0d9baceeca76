import Glibc
import Logging
import PromiseCore
import PromiseSystem
import PromiseWire

/// Log lines on stderr: `time level message key=value…`, one write(2) each, so that lines of threads do not mix.
struct DaemonLog: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

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
        let line = DaemonLog.line(
            time: SystemClock().now(), level: event.level, message: event.message.description,
            metadata: own.map { ($0.key, $0.value.description) }, error: event.error.map { "\($0)" })
        let bytes = Array(line.utf8)
        // A log that cannot be written must not stop the daemon.
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }

    static func line(
        time: Timestamp, level: Logger.Level, message: String, metadata: [(key: String, value: String)], error: String?
    ) -> String {
        var parts = [TimeText.format(nanoseconds: time.rawValue), level.rawValue, escapedForDisplay(message.utf8)]
        parts += metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\(quoted($0.value))" }
        if let error { parts.append("error=\(quoted(error))") }
        return parts.joined(separator: " ") + "\n"
    }

    private static func quoted(_ value: String) -> String {
        let shown = escapedForDisplay(value.utf8)
        guard shown.isEmpty || shown.contains(where: { $0 == " " || $0 == "\"" }) else { return shown }
        return "\"" + shown.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
    }
}
