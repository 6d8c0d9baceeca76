import Glibc
import PromiseCore
import PromiseSystem
import Synchronization

/// The lock around the store, and what is done with the store under it.
// Unchecked because `store` and `isClosed` are only touched while `mutex` is held, which the compiler cannot see.
final class StoreLock: @unchecked Sendable {
    private let store: Store
    private var isClosed = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    /// Threads between their call and the lock.
    private let waitingCount = Atomic<Int>(0)

    /// Somebody waits for the lock, or did a moment ago.
    var isWanted: Bool { waitingCount.load(ordering: .relaxed) > 0 }

    init(_ store: sending Store) {
        self.store = store
        mutex = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ERRORCHECK))
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
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
        // A read that fails may have cost the transaction.
        if store.connection.problem != nil { store.noticeLostEpoch() }
        unlock()
    }

    /// Takes the lock for a write. The caller unlocks, also when this throws.
    func beginWrite(derived: Bool) throws(Failure) -> Store {
        lock()
        try checkOpen()
        store.beginBody(writing: true, derived: derived)
        return store
    }

    /// Ends a write whose body threw `failure`, or nothing. Returns when what it changed survives the end of this process;
    /// throws when nothing of it is left.
    func endWrite(_ failure: Failure?) throws(Failure) {
        do throws(Failure) {
            try store.endBody(succeeded: failure == nil)
        } catch {
            throw failure ?? error
        }
        if let failure { throw failure }
    }

    /// What there is to tell the background thread, once. The lock is held.
    func takeNotes() -> Store.Notes {
        if store.notes.isEmpty { return [] }
        defer { store.notes = [] }
        return store.notes
    }

    func unlock() {
        pthread_mutex_unlock(mutex)
        LockRank.index.leave()
    }

    /// Runs `body` with the store alone: everything is committed and no transaction is open.
    func withStore<Value>(_ body: (Store) throws(Failure) -> Value) throws(Failure) -> Value {
        lock()
        defer { unlock() }
        try checkOpen()
        try store.commitEpoch()
        return try body(store)
    }

    /// As `withStore`, with whatever is open; `body` runs no statement.
    func withFacts<Value>(_ body: (Store) -> Value) throws(Failure) -> Value {
        lock()
        defer { unlock() }
        if isClosed { throw StoreLock.closed }
        return body(store)
    }

    /// Commits what is open and closes the connection; calls that come later fail. More than once is fine. `last` moves the
    /// log into the database and says whether that was all of it.
    func close(_ last: (Connection) -> Bool) {
        lock()
        defer { unlock() }
        if isClosed { return }
        // What cannot be committed is replayed when the index is opened.
        let isCommitted = (try? store.commitEpoch()) != nil
        if last(store.connection), isCommitted { store.journal.invalidate() }
        store.connection.close()
        isClosed = true
    }

    // Below: called with the lock held.

    private func checkOpen() throws(Failure) {
        if isClosed { throw StoreLock.closed }
        if store.isBehind { try store.restore() }
    }

    private static let closed = Failure(.interrupted, "the daemon of this domain is ending")

    private func lock() {
        LockRank.index.enter()
        if pthread_mutex_trylock(mutex) == 0 { return }
        waitingCount.wrappingAdd(1, ordering: .relaxed)
        let code = pthread_mutex_lock(mutex)
        waitingCount.wrappingSubtract(1, ordering: .relaxed)
        precondition(code != EDEADLK, "read and write must not be called inside a read or write")
        precondition(code == 0, "a mutex can be locked: errno \(code)")
    }
}
