import Glibc
import PromiseCore
import PromiseSystem

/// The second connection, for checkpoints, and the write-ahead log's own descriptor, for fsync: neither ever holds up
/// the connection that mutations use.
final class Log: Sendable {
    private let path: [UInt8]
    private let connection: Monitor<Connection?>
    private let files: Monitor<Files>

    private struct Files {
        /// The log is one file for as long as the hot connection is open. Closed when the last fsync that uses it is done,
        /// whatever `close` does meanwhile.
        var log: SharedDescriptor?
        var isFolderDurable = false
        var isClosed = false
    }

    /// A log larger than this is begun again, even if mutations must wait for a moment.
    private static let byteCountMax: UInt64 = 32 << 20
    /// A log that was left larger than this is worth a checkpoint.
    private static let byteCountDue: UInt64 = 16 << 20

    init(path: [UInt8]) throws(Failure) {
        self.path = path
        let second = try Connection(path: path)
        try second.run("PRAGMA wal_autocheckpoint = 0")
        try second.run("PRAGMA synchronous = NORMAL")
        connection = Monitor(second)
        files = Monitor(Files())
    }

    deinit { close() }

    private var logPath: [UInt8] { path + Array("-wal".utf8) }
    private var folderPath: [UInt8] {
        guard let slash = path.lastIndex(of: 0x2F) else { return Array(".".utf8) }
        return slash == 0 ? [0x2F] : Array(path[..<slash])
    }

    /// fdatasync(2) of the log: what was committed before survives a power cut.
    ///
    /// The log may be opened and closed by hand: SQLite holds no POSIX lock on it. The database file may not, as closing
    /// any descriptor of it would drop SQLite's locks (sqlite.org/howtocorrupt.html, 2.2).
    func synchronize() throws(Failure) {
        let log = try files.withLock { files throws(Failure) in
            if files.isClosed { throw Failure(.interrupted, "the daemon of this domain is ending") }
            if files.log == nil { files.log = try openLog() }
            return files.log
        }
        do throws(SystemError) {
            if let log { try PromiseSystem.synchronize(log.number, dataOnly: true, label: "index.log.fsync") }
        } catch {
            throw Failure(error)
        }
        // Without a log everything is in the database file, and a checkpoint is how SQLite is asked to sync that.
        if log == nil { _ = try copy() }
    }

    /// fsync(2) of the folder that holds the files, the first time and when there is a new one.
    func synchronizeFolder(isChanged: Bool) throws(Failure) {
        if !isChanged, files.withLock({ $0.isFolderDurable }) { return }
        do throws(SystemError) {
            let folder = try Descriptor.open(folderPath, flags: O_RDONLY | O_DIRECTORY, label: "index.folder.open")
            try PromiseSystem.synchronize(folder.number, dataOnly: false, label: "index.folder.fsync")
        } catch {
            throw Failure(error)
        }
        files.withLock { $0.isFolderDurable = true }
    }

    /// Nil when there is none.
    private func openLog() throws(Failure) -> SharedDescriptor? {
        do throws(SystemError) {
            return SharedDescriptor(try Descriptor.open(logPath, flags: O_RDWR, label: "index.log.open"))
        } catch {
            if error.errno == ENOENT { return nil }
            throw Failure(error)
        }
    }

    /// Copies the log into the database file, and syncs both. `whileAlone` runs its argument while no mutation runs. False
    /// when something was left.
    func checkpoint(whileAlone: (() throws(Failure) -> Void) throws(Failure) -> Void) throws(Failure) -> Bool {
        // Each pass leaves only what was committed during the one before.
        var isComplete = false
        for _ in 0..<3 where !isComplete { isComplete = try copy() }
        let size = (try? FileStatus.of(logPath, label: "index.log.size.max").size) ?? 0
        guard size > Log.byteCountMax else { return isComplete }
        // Only a transaction that begins when nothing is left uses the log from its start again, and while programs write
        // one is always open.
        try whileAlone { () throws(Failure) in _ = try copy() }
        return isComplete
    }

    /// The log has grown over several lives of the process.
    var isCheckpointDue: Bool {
        guard let size = try? FileStatus.of(logPath, label: "index.log.size.due").size else { return false }
        return size > Log.byteCountDue
    }

    private func copy() throws(Failure) -> Bool {
        try connection.withLock { connection throws(Failure) in
            guard let connection else { throw Failure(.interrupted, "the daemon of this domain is ending") }
            return try connection.checkpoint(truncating: false)
        }
    }

    func close() {
        connection.withLock { connection in
            connection?.close()
            connection = nil
        }
        files.withLock { files in
            files.log = nil
            files.isClosed = true
        }
    }
}
