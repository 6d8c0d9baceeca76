import CPromiseIndex
package import PromiseCore
package import PromiseSystem

/// The index of one domain: SQLite in WAL mode behind a journal, one writer, a bounded cache of nodes and entries in memory.
///
/// Thread-safe. When `write` returns, what it changed survives the end of this process: its statements are in the journal,
/// and SQLite commits those of many writes together later. A `read` or `write` inside another one traps. Every call blocks
/// for as long as others hold the lock: a mount's thread may, the cooperative pool must not.
package final class Index: Sendable {
    /// Internal for `Index+Testing.swift`.
    let store: StoreLock
    private let log: Log
    private let path: [UInt8]
    private let reserve: Reserve
    private let reserveForOpening: Reserve

    /// What the background thread waits for.
    private struct Work {
        var isCheckpointDue = false
        /// A transaction is open.
        var isEpochOpen = false
        /// A journal file waits for a sync of SQLite's log.
        var isFileWaiting = false
        /// Names may have changed that the search of names has not seen.
        var hasChanged = true
        var isClosed = false
    }
    private let work = Monitor(Work())
    private let changes = ChangeSignal()
    let touches = Touches()
    /// Held by whoever syncs. Before the store's lock.
    private let syncing = Monitor(())

    /// The number of the last body that the process before has kept: see `Transaction.body`.
    package let bodyAtOpening: UInt64

    /// How long the background thread lets a transaction be open.
    private static let epochAgeMax = Duration.seconds(1)
    /// How long nothing is written before the search catches up with names.
    private static let searchQuietTime = Duration.seconds(3)
    /// For others, between two pieces of that.
    private static let searchPause = Duration.milliseconds(5)

    /// How many rows the change feed keeps.
    package static let changeCountMax = 1_000_000

    /// Opens or creates `path` (bytes), brings what a crash left in the journal into the database, migrates the schema, makes
    /// the root folder node.
    ///
    /// Keeps up to `cacheCountMax` nodes and as many entries in memory. Throws `.corrupted` for a file that is no database, and
    /// for a journal that does not fit it; `.invalid` for one of a newer version, `.busy` when another process holds it,
    /// `.storeFull`, `.inputOutput`. Opening it again then finds everything as it was.
    package init(
        path: [UInt8], cacheCountMax: Int = 100_000, journalByteCount: Int = Journal.fileByteCount,
        reserveByteCount: UInt64 = Reserve.byteCount,
        clock: any TimeSource = SystemClock()
    ) throws(Failure) {
        promise_index_configure_sqlite()
        StorageFaults.install()
        let journal = try Journal(path: path, byteCount: journalByteCount)
        let reserve = Reserve(path: path + Array("-reserve".utf8), byteCount: reserveByteCount)
        let reserveForOpening = Reserve(path: path + Array("-opening".utf8), byteCount: reserveByteCount / 2)
        let reserves = [reserveForOpening, reserve]
        try Reserve.makeRoom(reserves, beside: path)
        let migration = try Reserve.spend(reserves, beside: path) { () throws(Failure) in
            try Schema.migrate(path: path) { () throws(Failure) in try journal.recover(path: path) }
        }
        self.path = path
        self.reserve = reserve
        self.reserveForOpening = reserveForOpening
        let log = try Reserve.spend(reserves, beside: path) { () throws(Failure) in try Log(path: path) }
        self.log = log
        let opened = try Reserve.spend(reserves, beside: path) { () throws(Failure) in
            try Store(path: path, cacheCountMax: cacheCountMax, journal: journal, log: log, now: clock.now())
        }
        bodyAtOpening = opened.sequence
        store = StoreLock(opened)
        reserve.refill()
        reserveForOpening.refill()
        if log.isCheckpointDue { work.update { $0.isCheckpointDue = true } }
        try migration.close()
    }

    deinit { close() }

    /// Reads several things at one moment. A change inside it traps.
    // Not specialized: the optimizer of Swift 6.3.1 crashes on it (a closure that borrows a noncopyable value and throws).
    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    package func read<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        defer { store.endRead() }
        return try body(Transaction(store: try store.beginRead()))
    }

    /// Runs `body` in a transaction; all or nothing. When it throws, nothing has changed. When it returns, its changes survive
    /// the end of this process; `synchronize` makes them survive a power cut.
    ///
    /// A failure of the storage undoes the body even when the body catches it. Undoing a body that had changed something
    /// costs more than the body, as those before it may have to be replayed.
    package func write<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        try write(derived: false, body)
    }

    /// What a `derived` body changes can be made again from the rest: it is lost when the process ends before SQLite commits.
    // Not specialized: see `read`.
    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    private func write<Value>(
        derived: Bool, _ body: (borrowing Transaction) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        var lastChange: Int64 = 0
        var isFollowerToWake = false
        defer {
            tell(store.takeNotes())
            store.unlock()
            changes.advance(to: lastChange)
            if isFollowerToWake { changes.wake() }
        }
        let state = try store.beginWrite(derived: derived)
        let value: Value
        do throws(Failure) {
            value = try body(Transaction(store: state))
        } catch {
            try store.endWrite(error)
            preconditionFailure("a write that failed throws")
        }
        try store.endWrite(nil)
        // Before the changes are told: who hears of them finds what was touched with them.
        if touches.isWatched, touches.add(nodes: state.touched, entries: state.touchedEntries) { isFollowerToWake = true }
        lastChange = state.lastChange
        return value
    }

    /// Blocks until the change feed may have changes after `sequence`, `wakeFollower` is called or the time is over. Returns
    /// what to give to the next call. For one follower, as `wakeFollower` wakes one.
    package func waitForChange(after sequence: Int64, timeout: Duration? = nil) -> Int64 {
        changes.wait(beyond: sequence, timeout: timeout)
    }

    /// Not less than the number of any change whose `write` has returned.
    package var newestChange: Int64 { changes.newest }

    package func wakeFollower() { changes.wake() }

    /// As `write`, for what gives room back: on a full disk it may use what is kept in reserve, so that files can still be
    /// removed. `body` runs twice then.
    package func writeFreeing<Value>(_ body: (borrowing Transaction) throws(Failure) -> Value) throws(Failure) -> Value {
        try spendingReserve { () throws(Failure) in try write(body) }
    }

    /// Runs `body` with the store alone and everything committed, for what loses nothing and may use the reserve.
    private func withCommitted<Value>(_ body: (Store) throws(Failure) -> Value) throws(Failure) -> Value {
        try spendingReserve { () throws(Failure) in try store.withStore(body) }
    }

    private func spendingReserve<Value>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        do throws(Failure) {
            return try body()
        } catch {
            guard error.code == .storeFull, reserve.release() else { throw error }
            try store.withFacts { $0.commitFailure = nil }
            // A checkpoint lets the log be used from its start again, and then the reserve can be filled again.
            defer { work.update { $0.isCheckpointDue = true } }
            return try body()
        }
    }

    // The background thread.

    private func tell(_ notes: Store.Notes) {
        if notes.isEmpty { return }
        let isCheckpointDue = notes.contains(.checkpoint) || !reserve.isFull
        work.update { work in
            if isCheckpointDue { work.isCheckpointDue = true }
            if notes.contains(.epoch) { work.isEpochOpen = true }
            if notes.contains(.change) { work.hasChanged = true }
            if notes.contains(.waitingFile) { work.isFileWaiting = true }
        }
    }

    /// Sleeps until the log is worth a checkpoint; false when the index was closed. Meanwhile it commits what has been open
    /// for a second, and syncs SQLite's log where the journal waits for that. Nothing wakes it while nothing is written.
    package func waitUntilCheckpointIsDue() -> Bool {
        while true {
            let duty = work.wait { work -> Duty? in
                if work.isClosed { return .end }
                if work.isCheckpointDue {
                    work.isCheckpointDue = false
                    return .checkpoint
                }
                if work.isFileWaiting {
                    work.isFileWaiting = false
                    return .freeFiles
                }
                if work.isEpochOpen { return .age }
                return work.hasChanged ? .search : nil
            }
            switch duty {
            case .end, nil: return false
            case .checkpoint: return true
            case .freeFiles: freeJournalFiles()
            case .age: commitWhenOld()
            case .search: catchUpSearchWhenQuiet()
            }
        }
    }

    private enum Duty { case end, checkpoint, freeFiles, age, search }

    /// A search goes on without it, only slower, so it is done while nobody writes.
    private func catchUpSearchWhenQuiet() {
        func isDisturbed(within time: Duration) -> Bool {
            work.wait(timeout: time) { work in
                work.isClosed || work.isCheckpointDue || work.isFileWaiting || work.hasChanged ? true : nil
            } ?? false
        }
        work.update { $0.hasChanged = false }
        var isBehind = true
        if !isDisturbed(within: Index.searchQuietTime) {
            do throws(Failure) {
                repeat {
                    isBehind = try write(derived: true) { transaction throws(Failure) in try transaction.indexSomeNames() }
                } while isBehind && !isDisturbed(within: Index.searchPause)
            } catch {
                // The next change tries again.
                isBehind = false
            }
        }
        if isBehind { work.update { $0.hasChanged = true } }
    }

    /// Brings the search of names up to date. Mutations go on meanwhile.
    package func catchUpSearch() throws(Failure) {
        try repeatGently { () throws(Failure) in
            try write(derived: true) { transaction throws(Failure) in try transaction.indexSomeNames() }
        }
    }

    private func commitWhenOld() {
        let isUrgent = work.wait(timeout: Index.epochAgeMax) { work in
            work.isClosed || work.isCheckpointDue || work.isFileWaiting ? true : nil
        }
        if isUrgent == true { return }
        work.update { $0.isEpochOpen = false }
        // Nothing is lost when it fails: the journal has it, and the next write tells of an open transaction again.
        _ = try? store.withStore { _ in }
    }

    /// Nothing is lost when it fails: whoever needs a free file syncs again.
    private func freeJournalFiles() {
        guard let plan = try? store.withFacts({ $0.planSync() }), (try? log.synchronize()) != nil else { return }
        _ = try? store.withFacts { $0.noteLogSync(plan) }
    }

    /// Makes everything that has been answered survive a power cut: fdatasync of the journal, if there is anything new in
    /// it. Does not hold up mutations.
    package func synchronize() throws(Failure) {
        // One after the other: the second finds its work done, and a failure of the disk is reported only once.
        try syncing.withLock { _ throws(Failure) in
            let plan = try store.withFacts { $0.planSync() }
            let failed = plan.files.filter { (try? $0.synchronize()) == nil }
            if !failed.isEmpty { try synchronizeWithoutJournal(failed) }
            if plan.isLogNeeded { try log.synchronize() }
            try log.synchronizeFolder(isChanged: plan.isFolderNeeded)
            try store.withFacts { $0.noteSync(plan, isLogSynced: plan.isLogNeeded) }
        }
    }

    /// As `synchronize`, after `body`, which syncs the file `other`. The disk writes the journal's pages meanwhile, so that the
    /// second flush has little to do; where one flush does for both, there is no second.
    package func synchronize(after other: CInt, _ body: () throws(Failure) -> Void) throws(Failure) {
        let plan = try store.withFacts { $0.planSync() }
        for file in plan.files { file.beginWriting() }
        let isOnlyJournal = !plan.files.isEmpty && !plan.isLogNeeded && !plan.isFolderNeeded
        guard isOnlyJournal, plan.files.allSatisfy({ $0.isFlushed(with: other) }) else {
            try body()
            return try synchronize()
        }
        beginWriting(other)
        let failed = plan.files.filter { (try? $0.finishWriting()) == nil }
        guard failed.isEmpty else {
            try body()
            return try syncing.withLock { _ throws(Failure) in
                try synchronizeWithoutJournal(failed)
            }
        }
        try body()
        try store.withFacts { $0.noteSync(plan, isLogSynced: false) }
    }

    /// After a failing fsync the kernel may have dropped what it could not write, and the files are
    /// not to be trusted.
    private func synchronizeWithoutJournal(_ failed: [JournalFile]) throws(Failure) {
        try store.withStore { store throws(Failure) in
            try log.synchronize()
            store.noteLogSync(store.planSync())
            store.replaceFiles(failed)
        }
    }

    /// Prunes the change feed and moves the log into the database file; called now
    /// and then by a background thread, never by a mount request. Mutations go on meanwhile.
    package func checkpoint() throws(Failure) { try checkpoint(keepingChanges: Index.changeCountMax) }

    /// With a feed of another length, for tests.
    package func checkpoint(keepingChanges count: Int) throws(Failure) {
        precondition(count > 0, "the feed keeps its last row, which carries the sequence across restarts")
        try repeatGently { () throws(Failure) in
            try write(derived: true) { transaction throws(Failure) in try ChangeFeed.prune(keeping: count, transaction) }
        }
        let plan = try store.withStore { store throws(Failure) in
            try store.fitCache()
            return store.planSync()
        }
        let isComplete = try log.checkpoint { copy throws(Failure) in
            try store.withStore { _ throws(Failure) in try copy() }
        }
        if isComplete { try store.withFacts { $0.noteLogSync(plan) } }
        reserve.refill()
        reserveForOpening.refill()
    }

    /// Calls `piece` until it returns false. Each piece holds the lock, which is not given to who waits longest: others get
    /// as much time in between as the piece took.
    private func repeatGently(_ piece: () throws(Failure) -> Bool) throws(Failure) {
        while true {
            let start = monotonicTime()
            guard try piece() else { return }
            pause(nanoseconds: store.isWanted ? monotonicTime() - start : 0)
        }
    }

    /// As `read`, for one of many in a row: others get as much time afterwards as it took.
    package func readInTurn<Value>(
        _ body: (borrowing Transaction) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let start = monotonicTime()
        let value = try read(body)
        pause(nanoseconds: store.isWanted ? monotonicTime() - start : 0)
        return value
    }

    /// Gives the log's room on the disk back as well. Holds up mutations for a moment; for somebody who asked for room.
    package func shrink() throws(Failure) {
        try checkpoint()
        try store.withStore { store throws(Failure) in _ = try store.connection.checkpoint(truncating: true) }
    }

    /// Checks schema, SQLite's integrity_check, and every invariant between tables; returns a sentence for each violation.
    ///
    /// At most 1,000 of them. Reads one committed moment through a connection of its own, and compares the caches with
    /// the tables under the lock: seconds for a million nodes.
    package func verify() throws(Failure) -> [String] {
        var problems = try withCommitted { store throws(Failure) in try store.verifyMemory() }
        // The lock is free again: what follows takes long and sees one snapshot.
        let connection = try Connection(path: path)
        defer { connection.close() }
        var verification = Verification(connection: connection)
        problems += try verification.run()
        return Array(problems.prefix(Verification.problemCountMax))
    }

    /// What was made or edited here and is not in line for the provider, a sentence for each. As `verify`, of one committed
    /// moment.
    package func verifyQueue() throws(Failure) -> [String] {
        try withCommitted { _ in }
        let connection = try Connection(path: path)
        defer { connection.close() }
        var verification = Verification(connection: connection)
        return try verification.runQueue()
    }

    /// Closes the database cleanly (checkpoint and truncate the log). Later calls fail with `.inputOutput`; more than one
    /// `close` is fine.
    package func close() {
        let wasClosed = work.update { work in
            defer { work.isClosed = true }
            return work.isClosed
        }
        // What a failing checkpoint leaves in the log is read again when the index is opened.
        store.close { connection in
            log.close()
            return (try? connection.checkpoint(truncating: true)) == true
        }
        // The log and the shared memory are gone, so that the next opening has what this one had.
        if !wasClosed { [reserveForOpening, reserve].forEach { $0.refill() } }
    }
}
