package import PromiseHTTP
package import PromiseProvider
import PromiseSystem
import Synchronization

/// Moves that have begun and not ended. A folder moves object by object, and whoever looks at it meanwhile, or after
/// the daemon died, is to see it moved: so what has begun is ended before anything else is told of its two places.
package final class MoveJournal: Sendable {
    package struct Record: Codable, Hashable, Sendable {
        /// Keys of folders, or of a file, as they are in URLs.
        package var source: String
        package var target: String
        /// Copies that have another tag than what they were made of: by the key in the source, the tags of both.
        package var copies: [String: [String]]?
        /// Of a file's move, the file's tag; nil: a folder's.
        package var tag: String?

        package init(source: String, target: String) {
            self.source = source
            self.target = target
        }

        func isSameMove(as other: Record) -> Bool { source == other.source && target == other.target }
    }

    private struct State {
        var records: [Record]
        var running: [Record] = []

        func index(of record: Record) -> Int? {
            records.firstIndex { $0.isSameMove(as: record) }
        }
    }

    private let file: RememberedFile<[Record]>
    /// Taken before `state`, by whoever writes: who only asks never waits for the disk.
    private let writing = Mutex(())
    private let state: Mutex<State>

    package init(_ file: RememberedFile<[Record]>) {
        self.file = file
        state = Mutex(State(records: file.read() ?? []))
    }

    /// Returns when it is on the disk: what is not journalled must not begin. Throws `.permanent`. Blocking.
    package func begin(_ record: Record) throws(ProviderError) {
        do throws(SystemError) {
            try writing.withLock { _ throws(SystemError) in
                try file.keep(state.withLock { $0.records } + [record])
                state.withLock { state in
                    state.records.append(record)
                    state.running.append(record)
                }
            }
        } catch {
            throw ProviderError(.permanent, "a move cannot be journalled: \(error.description)")
        }
    }

    /// Blocking.
    package func end(_ record: Record) {
        write { state in
            state.records.removeAll { $0.isSameMove(as: record) }
            state.running.removeAll { $0.isSameMove(as: record) }
        }
    }

    /// A copy that has another tag is known again by it, also by the next daemon. Blocking.
    package func copied(_ key: String, tag: String, copyTag: String, _ record: Record) {
        write { state in
            guard let index = state.index(of: record) else { return }
            state.records[index].copies = (state.records[index].copies ?? [:]).merging([key: [tag, copyTag]]) { $1 }
        }
    }

    /// What it was copied from is gone, so nobody asks for its tag. Written with the next copy: one
    /// too many in the file is harmless, and with all of them a large folder's would grow with each.
    package func moved(_ key: String, _ record: Record) {
        state.withLock { state in
            guard let index = state.index(of: record) else { return }
            state.records[index].copies?[key] = nil
        }
    }

    private func write(_ change: (inout State) -> Void) {
        writing.withLock { _ in
            let records = state.withLock { state in
                change(&state)
                return state.records
            }
            file.write(records)
        }
    }

    /// The tag of our copy of that version.
    func copyTag(_ key: String, tag: String, _ record: Record) -> String? {
        state.withLock { state in
            let known = state.records.first { $0.isSameMove(as: record) }?.copies?[key]
            return known?.count == 2 && known?.first == tag ? known?.last : nil
        }
    }

    /// It broke off, and somebody has to go on with it.
    package func leave(_ record: Record) { state.withLock { $0.running.removeAll { $0.isSameMove(as: record) } } }

    /// Those that nobody is at work on.
    package var unfinished: [Record] {
        state.withLock { state in
            state.records.filter { record in !state.running.contains { $0.isSameMove(as: record) } }
        }
    }
}
