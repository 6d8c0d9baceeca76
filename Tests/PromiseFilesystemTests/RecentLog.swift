import Logging
import Synchronization

/// The last lines of a log, in memory.
final class RecentLines: Sendable {
    private static let countMax = 120
    private let lines = Mutex<[String]>([])

    var text: String { lines.withLock { $0.suffix(RecentLines.countMax).joined(separator: "\n") } }

    fileprivate func add(_ line: String) {
        lines.withLock { lines in
            lines.append(line)
            if lines.count > 2 * RecentLines.countMax { lines.removeFirst(RecentLines.countMax) }
        }
    }
}

/// Every line of an engine, its decisions included.
struct RecentLog: LogHandler {
    let lines: RecentLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: RecentLines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let values = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        lines.add(([event.message.description] + values).joined(separator: " "))
    }
}
