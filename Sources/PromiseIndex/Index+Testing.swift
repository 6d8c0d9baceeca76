import CPromiseIndex
package import PromiseCore

// For tests only.

extension Index {
    /// Makes the database refuse to grow beyond its present size, or lifts that; for tests of a full disk.
    package func setFull(_ isFull: Bool) throws(Failure) {
        try store.withStore { store throws(Failure) in
            if isFull {
                _ = try store.connection.first("PRAGMA max_page_count = 1") { $0.integer(0) }
            } else {
                _ = try store.connection.first("PRAGMA max_page_count = 1073741823") { $0.integer(0) }
            }
        }
    }

    /// Keeps the locks of all indexes in memory, where no other process opens them. Before the first is opened.
    package static func keepLocksInMemory() { promise_index_keep_locks_in_memory() }

    /// Commits what is open; how many transactions were committed since the index was opened.
    package func commitCount() throws(Failure) -> Int {
        try store.withStore { store throws(Failure) in store.commitCount }
    }

    /// How many statements were run since the index was opened.
    package func statementCount() throws(Failure) -> Int {
        try read { transaction throws(Failure) in transaction.store.connection.runCount }
    }

    /// How much they did, in steps of SQLite's: a few for each row that was looked at.
    package func stepCount() throws(Failure) -> Int {
        try read { transaction throws(Failure) in transaction.store.connection.stepCount }
    }

    /// Commits what is open; how many pages were written to SQLite's log since the index was opened.
    package func logPageCount() throws(Failure) -> Int {
        try store.withStore { store throws(Failure) in store.connection.writtenPageCount }
    }

    /// Runs a statement of which this program knows nothing in a body of its own, as another version would.
    package func runJournaled(_ sql: StaticString) throws(Failure) {
        try write { transaction throws(Failure) in _ = try transaction.store.change(sql) }
    }

    /// Runs a statement as another program would, through a connection that knows nothing of this index.
    package static func runAside(_ sql: StaticString, path: [UInt8]) throws(Failure) {
        let connection = try Connection(path: path)
        defer { connection.close() }
        try connection.run(sql)
    }

    /// Runs `body` while another connection holds the write lock, as another process could.
    package static func whileLocked(path: [UInt8], _ body: () throws -> Void) throws {
        let connection = try Connection(path: path)
        defer { connection.close() }
        try connection.run("BEGIN IMMEDIATE")
        try body()
        try connection.run("ROLLBACK")
    }
}

extension Index {
    /// The checksum of the journal's header.
    package static func checksum(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { Checksum.of($0, seed: 0) } }
}
