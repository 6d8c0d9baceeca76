package import PromiseCore
package import PromiseSystem

import Synchronization

/// The index of one domain: SQLite in WAL mode, one writer, a bounded cache of nodes and entries in memory.
///
/// Thread-safe. `write` commits before it returns and shares its commit with writers that wait at the same moment.
/// Reads see every committed and at most some about-to-be-committed changes. A `read` or `write` inside another one
/// traps. Every call blocks for as long as others hold the lock: a mount's thread may, the cooperative pool must not.
package final class Index: Sendable {
    /// Internal for `Index+Testing.swift`.
    let queue: CommitQueue
    private let log: Log
    private let path: [UInt8]
    private let reserve: Reserve
    private let writeCount = Atomic<Int>(0)
    private let checkpointDue = Monitor((isDue: false, isClosed: false))

    /// Writes between two checkpoints: about 16 MiB of log.
    private static let writesPerCheckpoint = 512

    /// How many rows the change feed keeps.
    package static let changeCountMax = 1_000_000

    /// Opens or creates `path` (bytes), migrates the schema, makes the root folder node.
    ///
    /// Keeps up to `cacheCountMax` nodes and as many entries in memory. Throws `.corrupted` for a file that is no database,
    /// `.invalid` for one of a newer version, `.busy` when another process holds it, `.storeFull`, `.inputOutput`.
    package init(path: [UInt8], cacheCountMax: Int = 100_000, clock: any TimeSource = SystemClock()) throws(Failure) {
        let migration = try Schema.migrate(path: path)
        self.path = path
        queue = CommitQueue(try Store(path: path, cacheCountMax: cacheCountMax, now: clock.now()))
        log = try Log(path: path)
        reserve = Reserve(path: path + Array("-reserve".utf8))
        try migration.close()
    }

    deinit { close() }

    /// Reads several things at one moment. A change inside it traps.
    // Not specialized: the optimizer of Swift 6.3.1 crashes on it (a closure that borrows a noncopyable value and throws).
    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    package func read<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        defer { queue.endRead() }
        return try body(Transaction(store: try queue.beginRead()))
    }

    /// Runs `body` in a transaction; all or nothing. When it throws, nothing has changed. Committed when this returns, so
    /// that it survives the end of this process; `synchronize` makes it survive a power cut.
    ///
    /// A failure of the storage undoes the body even when the body catches it. When the shared commit fails every writer
    /// that took part gets that failure, and the index goes on.
    // Not specialized: see `read`.
    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    package func write<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        defer { queue.unlock() }
        let store = try queue.beginWrite()
        let value: Value
        do throws(Failure) {
            value = try body(Transaction(store: store))
        } catch {
            try queue.endWrite(error)
            preconditionFailure("a write that failed throws")
        }
        try queue.endWrite(nil)
        noteWrite()
        return value
    }

    /// As `write`, for what gives room back: on a full disk it may use what is kept in reserve, so that files can still be
    /// removed. `body` runs twice then.
    package func writeFreeing<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        do throws(Failure) {
            return try write(body)
        } catch {
            guard error.code == .storeFull, reserve.release() else { throw error }
            // A checkpoint lets the log be used from its start again, and then the reserve can be filled again.
            defer { checkpointDue.update { $0.isDue = true } }
            return try write(body)
        }
    }

    private func noteWrite() {
        let count = writeCount.wrappingAdd(1, ordering: .relaxed).newValue
        if count % Index.writesPerCheckpoint == 0 || count % 16 == 0 && !reserve.isFull {
            checkpointDue.update { $0.isDue = true }
        }
    }

    /// Sleeps until the log is worth a checkpoint; false when the index was closed.
    package func waitUntilCheckpointIsDue() -> Bool {
        checkpointDue.wait { state in
            if state.isClosed { return false }
            guard state.isDue else { return nil }
            state.isDue = false
            return true
        } ?? false
    }

    /// Makes everything committed survive a power cut: fsync of the write-ahead log. Does not hold up mutations.
    package func synchronize() throws(Failure) { try log.synchronize() }

    /// Prunes the change feed, brings the search of names up to date and moves the log into the database file; called now
    /// and then by a background thread, never by a mount request. Mutations go on meanwhile.
    package func checkpoint() throws(Failure) { try checkpoint(keepingChanges: Index.changeCountMax) }

    /// With a feed of another length, for tests.
    package func checkpoint(keepingChanges count: Int) throws(Failure) {
        precondition(count > 0, "the feed keeps its last row, which carries the sequence across restarts")
        // In small pieces, because each holds the lock.
        while try write({ transaction throws(Failure) in try transaction.pruneChanges(keeping: count) }) {}
        while try write({ transaction throws(Failure) in try transaction.indexSomeNames() }) {}
        try log.checkpoint { copy throws(Failure) in
            try queue.withStore { _ throws(Failure) in try copy() }
        }
        reserve.refill()
    }

    /// Gives the log's room on the disk back as well. Holds up mutations for a moment; for somebody who asked for room.
    package func shrink() throws(Failure) {
        try checkpoint()
        try queue.withStore { store throws(Failure) in _ = try store.connection.checkpoint(truncating: true) }
    }

    /// Checks schema, SQLite's integrity_check, and every invariant between tables; returns a sentence for each violation.
    ///
    /// At most 1,000 of them. Reads one committed moment through a connection of its own, and compares the caches with
    /// the tables under the lock: seconds for a million nodes.
    package func verify() throws(Failure) -> [String] {
        var problems = try queue.withStore { store throws(Failure) in try store.verifyMemory() }
        // The lock is free again: what follows takes long and sees one snapshot.
        let connection = try Connection(path: path)
        defer { connection.close() }
        var verification = Verification(connection: connection)
        problems += try verification.run()
        return Array(problems.prefix(Verification.problemCountMax))
    }

    /// Closes the database cleanly (checkpoint and truncate the log). Later calls fail with `.inputOutput`; more than one
    /// `close` is fine.
    package func close() {
        checkpointDue.update { $0.isClosed = true }
        log.close()
        // What a failing checkpoint leaves in the log is read again when the index is opened.
        queue.close { connection in _ = try? connection.checkpoint(truncating: true) }
    }
}
