import PromiseCore
import PromiseSystem

import Glibc
import Synchronization

/// The lock around the store, and the sharing of commits.
///
/// A writer runs its body under the lock. When other writers wait for the lock at the end of it, the writer leaves the
/// transaction open and sleeps until one of them has committed for all; else it commits itself. Whoever is the last of a
/// batch commits, and the wait ends because a writer that was counted as waiting always comes.
// Unchecked because `store`, `batch` and `isClosed` are only touched while `mutex` is held, which the compiler cannot see.
final class CommitQueue: @unchecked Sendable {
    private let store: Store
    private var batch: Batch?
    private var isClosed = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    /// Writers between their call and the lock.
    private let waitingCount = Atomic<Int>(0)

    /// How many bodies share a commit at most, so that the first one does not wait for ever.
    static let bodyCountMax = 64

    /// What the members of a batch wait for.
    private final class Batch {
        var isFinished = false
        var failure: Failure?
    }

    init(_ store: sending Store) {
        self.store = store
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ERRORCHECK))
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    // The steps of `Index.read` and `Index.write`. They are steps rather than functions around a closure because those two
    // are generic and run unspecialized: whatever is generic in them is looked up at run time.

    /// Takes the lock for a read. `endRead` follows, also when this throws.
    func beginRead() throws(Failure) -> Store {
        lock()
        try checkOpen()
        store.beginBody(writing: false)
        return store
    }

    func endRead() {
        // A read that fails may cost others their transaction.
        if store.connection.problem != nil, case .batchLost(let failure) = store.endBody(succeeded: false) {
            finishBatch(failure)
        }
        unlock()
    }

    /// Takes the lock for a write. The caller unlocks, also when this throws.
    func beginWrite() throws(Failure) -> Store {
        waitingCount.wrappingAdd(1, ordering: .relaxed)
        lock()
        waitingCount.wrappingSubtract(1, ordering: .relaxed)
        try checkOpen()
        store.beginBody(writing: true)
        return store
    }

    /// Ends a write whose body threw `failure`, or nothing. Returns when what it changed is committed; throws when nothing
    /// of it is left.
    func endWrite(_ failure: Failure?) throws(Failure) {
        switch store.endBody(succeeded: failure == nil) {
        case .kept:
            try commitOrWait()
        case .undone:
            let problem = store.connection.problem
            if store.isBatchOpen && !othersWillCommit { commitForOthers() }
            throw failure ?? problem ?? Failure(.inputOutput, "the index failed")
        case .batchLost(let failure):
            finishBatch(failure)
            throw failure
        }
    }

    /// Runs `body` with the store alone: no transaction is open. Used by `verify` and `close`.
    func withStore<Value>(_ body: (Store) throws(Failure) -> Value) throws(Failure) -> Value {
        lock()
        defer { unlock() }
        try checkOpen()
        if store.isBatchOpen { try commitBatch() }
        return try body(store)
    }

    /// Commits what is open and closes the connection; calls that come later fail. More than once is fine.
    func close(_ last: (Connection) -> Void) {
        lock()
        defer { unlock() }
        if isClosed { return }
        if store.isBatchOpen { commitForOthers() }
        last(store.connection)
        store.connection.close()
        isClosed = true
    }

    // Below: called with the lock held.

    private var othersWillCommit: Bool {
        waitingCount.load(ordering: .relaxed) > 0 && store.bodyCount < CommitQueue.bodyCountMax
    }

    private func commitOrWait() throws(Failure) {
        guard store.isBatchOpen else { return }
        guard othersWillCommit else { return try commitBatch() }
        let batch = self.batch ?? Batch()
        self.batch = batch
        while !batch.isFinished { pthread_cond_wait(condition, mutex) }
        if let failure = batch.failure { throw failure }
    }

    private func commitBatch() throws(Failure) {
        do throws(Failure) {
            try store.commit()
        } catch {
            finishBatch(error)
            throw error
        }
        finishBatch(nil)
    }

    /// For a caller who has no part in the batch: its members are told of a failure.
    private func commitForOthers() {
        precondition(batch != nil, "what is open belongs to somebody who waits")
        do throws(Failure) { try commitBatch() } catch { assert(batch == nil, "the members have been told") }
    }

    private func finishBatch(_ failure: Failure?) {
        guard let batch else { return }
        batch.failure = failure
        batch.isFinished = true
        self.batch = nil
        pthread_cond_broadcast(condition)
    }

    private func checkOpen() throws(Failure) {
        if isClosed { throw Failure(.inputOutput, "the index is closed") }
    }

    private func lock() {
        let code = pthread_mutex_lock(mutex)
        precondition(code != EDEADLK, "read and write must not be called inside a read or write")
        precondition(code == 0, "a mutex can be locked: errno \(code)")
    }

    func unlock() { pthread_mutex_unlock(mutex) }
}
