import Glibc
import PromiseCore
import PromiseSystem

// The epoch: one transaction of SQLite's for many bodies. A body is answered when its record is in the journal; SQLite
// commits them later, all at once. When SQLite loses the transaction, or a body has to be undone, the answered bodies are
// replayed from the journal: a savepoint for each body would make every good one pay for the few bad ones.

extension Store {
    /// What the background thread has to know.
    struct Notes: OptionSet {
        let rawValue: Int
        /// A transaction is open, which is to be committed when it is old.
        static let epoch = Notes(rawValue: 1)
        /// A journal file waits for SQLite's log to be synced.
        static let waitingFile = Notes(rawValue: 2)
        /// SQLite's log has grown.
        static let checkpoint = Notes(rawValue: 4)
        /// More than what can be made again from the rest has changed.
        static let change = Notes(rawValue: 8)
    }

    /// Bodies that share a commit at most: by then a body's part of the commit is small against what it costs itself.
    private static let epochBodyCountMax: UInt64 = 1_000
    private static let epochDerivedCountMax = 50
    /// Replaying no more than these takes less than a commit.
    private static let cheapReplayCountMax: UInt64 = 50
    /// What failed for want of room is not tried again for as long, in nanoseconds, unless somebody gave room back.
    private static let pause: Int64 = 300_000_000
    /// Pages of SQLite's log between two checkpoints: 16 MiB.
    private static let checkpointPageCount = 4_096

    /// Answered bodies that SQLite has not committed. Their records are in the present journal file, without a gap.
    private var openBodyCount: UInt64 { sequence - committedSequence }

    func beginEpoch() throws(Failure) {
        try connection.run("BEGIN IMMEDIATE")
        isEpochOpen = true
        derivedBodyCount = 0
    }

    /// Fails at once where a body could neither be journaled nor committed: undoing it would cost a replay each time.
    func checkRoom() throws(Failure) {
        guard let commitFailure, journal.room < Journal.roomMin, openBodyCount > Store.cheapReplayCountMax,
            monotonicTime() - commitFailure.time < Store.pause
        else { return }
        throw commitFailure.failure
    }

    // Keeping.

    /// Makes the body's changes survive the end of this process: by a record in the journal, or by a commit where there is
    /// no room for a record. When it throws, the body must be undone.
    func keepBody() throws(Failure) {
        sequence += 1
        do throws(Failure) {
            guard !record.pointee.isTooLarge, record.pointee.count <= journal.room else {
                return try keepByCommit(isForWantOfRoom: !record.pointee.isTooLarge)
            }
            do throws(Failure) {
                record.pointee.seal(sequence: sequence, salt: journal.salt)
                try journal.append(record.pointee.contents, sequence: sequence)
            } catch {
                // The next record is written over what there is of this one.
                do throws(Failure) { return try keepByCommit(isForWantOfRoom: false) } catch { connection.problem = nil }
                throw error
            }
        } catch {
            sequence -= 1
            throw error
        }
        record.pointee.wasWritten()
        if openBodyCount == 1 || commitFailure != nil { notes.formUnion([.epoch, .change]) }
        if openBodyCount >= Store.epochBodyCountMax || journal.room < Journal.roomMin { commitIfItMayWork() }
    }

    /// Leaves what a derived body changed to the next commit.
    func keepDerivedBody() {
        derivedBodyCount += 1
        notes.insert(.epoch)
        if derivedBodyCount >= Store.epochDerivedCountMax { commitIfItMayWork() }
    }

    private func keepByCommit(isForWantOfRoom: Bool) throws(Failure) {
        try commit()
        unrecordedCount += 1
        if isForWantOfRoom { changeFile() }
    }

    /// Nothing is lost when it does not: the journal has everything.
    private func commitIfItMayWork() {
        if let commitFailure, monotonicTime() - commitFailure.time < Store.pause { return }
        do throws(Failure) {
            try commitEpoch()
        } catch {
            return
        }
        if journal.room < Journal.roomMin { changeFile() }
    }

    /// Goes on with a journal file that may be written over. Everything answered has been committed. Without such a file
    /// each body is committed by itself.
    func changeFile() {
        precondition(openBodyCount == 0, "a record is written over only when its body is committed")
        guard monotonicTime() - fileFailureTime >= Store.pause else { return }
        var isChanged = journal.begin()
        if !isChanged, (try? log.synchronize()) != nil {
            journal.freed(upTo: committedSequence)
            isChanged = journal.begin()
        }
        if isChanged { record.pointee.forgetDefinitions() } else { fileFailureTime = monotonicTime() }
        if journal.isFileWaiting { notes.insert(.waitingFile) }
    }

    /// These could not be synced. Everything answered has been committed and synced.
    func replaceFiles(_ files: [JournalFile]) {
        for file in files { journal.abandon(file) }
        if journal.hasFile { return }
        fileFailureTime = .min / 2
        changeFile()
    }

    // Committing.

    /// Commits what is open. When that fails nothing is lost: the journal has it.
    func commitEpoch() throws(Failure) {
        if isBehind { try restore() }
        guard isEpochOpen else { return }
        if openBodyCount == 0 && derivedBodyCount == 0 { return closeEmptyEpoch() }
        do throws(Failure) {
            try commit()
        } catch {
            rollBack(isCommitting: false)
            throw error
        }
    }

    /// When it throws, a roll-back must follow.
    private func commit() throws(Failure) {
        precondition(isEpochOpen, "only an open transaction can be committed")
        do throws(Failure) {
            if let fault = FaultInjection.take("index.commit") { throw Failure(SystemError(errno: fault, label: "index.commit")) }
            try flushNodes()
            try JournalMark.set(sequence, in: connection)
            try connection.run("COMMIT")
        } catch {
            commitFailure = (error, monotonicTime())
            throw error
        }
        isEpochOpen = false
        committedSequence = sequence
        commitFailure = nil
        commitCount += 1
        let pageCount = connection.writtenPageCount
        if pageCount - checkpointedPageCount >= Store.checkpointPageCount {
            checkpointedPageCount = pageCount
            notes.insert(.checkpoint)
        }
    }

    // Undoing.

    /// A transaction in which nothing happened.
    func closeEmptyEpoch() {
        guard isEpochOpen, openBodyCount == 0, derivedBodyCount == 0 else { return }
        // An error here means that the transaction is gone already.
        _ = try? connection.run("ROLLBACK")
        isEpochOpen = false
    }

    /// SQLite gives up a transaction by itself after some failures.
    func noticeLostEpoch() {
        guard isEpochOpen && connection.isInAutocommit else { return }
        isEpochOpen = false
        dirtyNodes.removeAll()
        if openBodyCount > 0 { isBehind = true }
    }

    /// Brings the tables back to what has been answered. When even that fails, calls fail until `restore` succeeds.
    func rollBack(isCommitting: Bool) {
        if !connection.isInAutocommit {
            // An error here has already undone the transaction, or the connection is beyond use and later calls say so.
            _ = try? connection.run("ROLLBACK")
        }
        isEpochOpen = false
        // What was answered is in the journal.
        dirtyNodes.removeAll()
        guard openBodyCount > 0 else { return }
        isBehind = true
        guard (try? restore()) != nil else { return }
        // So that no body is replayed more than once, however many have to be undone after it.
        if isCommitting, commitFailure == nil { _ = try? commitEpoch() }
        connection.problem = nil
    }

    /// Replays what has been answered since the last commit.
    func restore() throws(Failure) {
        precondition(isBehind && !isEpochOpen, "answered bodies are replayed once")
        connection.problem = nil
        do throws(Failure) {
            try beginEpoch()
            let done = try journal.replay(into: connection, after: committedSequence)
            guard done == sequence else {
                throw Failure(.corrupted, "the index's journal ends at body \(done), not at \(sequence)")
            }
        } catch {
            _ = try? connection.run("ROLLBACK")
            isEpochOpen = false
            connection.problem = nil
            throw error
        }
        isBehind = false
        notes.insert(.epoch)
    }

    // Power cuts.

    /// What must be synced for everything that has been answered to survive a power cut.
    struct SyncPlan {
        let sequence: UInt64
        let committedSequence: UInt64
        let unrecordedCount: Int
        let files: [JournalFile]
        let isLogNeeded: Bool
        let isFolderNeeded: Bool
        let madeFileCount: Int
    }

    func planSync() -> SyncPlan {
        SyncPlan(
            sequence: sequence, committedSequence: committedSequence, unrecordedCount: unrecordedCount,
            files: journal.unsyncedFiles(), isLogNeeded: unrecordedCount > syncedUnrecordedCount,
            isFolderNeeded: journal.hasUnsyncedName, madeFileCount: journal.madeFileCount)
    }

    /// What the plan names has been synced.
    func noteSync(_ plan: SyncPlan, isLogSynced: Bool) {
        journal.synced(upTo: plan.sequence)
        if plan.isFolderNeeded { journal.syncedNames(of: plan.madeFileCount) }
        if isLogSynced { noteLogSync(plan) }
    }

    /// SQLite's log has been synced with what was committed when the plan was made.
    func noteLogSync(_ plan: SyncPlan) {
        journal.freed(upTo: plan.committedSequence)
        syncedUnrecordedCount = max(syncedUnrecordedCount, plan.unrecordedCount)
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
func monotonicTime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// nanosleep(2).
func pause(nanoseconds: Int64) {
    guard nanoseconds > 0 else { return }
    var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    // A signal that ends it early does no harm.
    nanosleep(&time, nil)
}
