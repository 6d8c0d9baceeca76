package import PromiseHTTP
import Synchronization

/// Moves of folders that have begun and not ended. A folder moves object by object, and whoever looks meanwhile, or after the
/// daemon died, is to see it moved: so what has begun is ended before anything else is told.
package final class MoveJournal: Sendable {
    package struct Record: Codable, Hashable, Sendable {
        /// Keys of folders, as they are in URLs.
        package var source: String
        package var target: String

        package init(source: String, target: String) {
            self.source = source
            self.target = target
        }
    }

    private let file: RememberedFile<[Record]>
    private let state: Mutex<(records: [Record], running: Set<Record>)>

    package init(_ file: RememberedFile<[Record]>) {
        self.file = file
        state = Mutex((file.read() ?? [], []))
    }

    /// Returns when it is written. Blocking.
    package func begin(_ record: Record) {
        state.withLock { state in
            state.records.append(record)
            state.running.insert(record)
            file.write(state.records)
        }
    }

    package func end(_ record: Record) {
        state.withLock { state in
            state.records.removeAll { $0 == record }
            state.running.remove(record)
            file.write(state.records)
        }
    }

    /// It broke off, and somebody has to go on with it.
    package func leave(_ record: Record) { state.withLock { _ = $0.running.remove(record) } }

    /// Those that nobody is at work on.
    package var unfinished: [Record] { state.withLock { state in state.records.filter { !state.running.contains($0) } } }
}
