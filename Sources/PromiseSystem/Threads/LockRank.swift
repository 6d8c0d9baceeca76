import Glibc
public import Synchronization

/// The order of locks (docs/THREADS.md): a thread takes one only while all that it has come before it. Debug builds trap
/// where one does otherwise, also where no two threads happened to meet.
@usableFromInline
package enum LockRank: Int, Sendable {
    /// A transaction of the index.
    case index
    case coordinator, remoteClaims, hydrator, hydrationJob, stitching
    /// Nothing is taken under it.
    case leaf

    /// Before the lock is taken.
    @inlinable
    package func enter() {
        #if DEBUG
            mark()
        #endif
    }

    /// After it was given back.
    @inlinable
    package func leave() {
        #if DEBUG
            unmark()
        #endif
    }

    #if DEBUG
        /// What this thread has, a bit for each rank.
        private static let key = {
            var key = pthread_key_t()
            precondition(pthread_key_create(&key, nil) == 0, "there is a key for what a thread has")
            return key
        }()

        @usableFromInline func mark() {
            let held = Int(bitPattern: pthread_getspecific(LockRank.key))
            precondition(held >> rawValue == 0, "a lock of rank \(self) is taken under one that comes after it: \(held)")
            pthread_setspecific(LockRank.key, UnsafeRawPointer(bitPattern: held | 1 << rawValue))
        }

        @usableFromInline func unmark() {
            let held = Int(bitPattern: pthread_getspecific(LockRank.key))
            pthread_setspecific(LockRank.key, UnsafeRawPointer(bitPattern: held & ~(1 << rawValue)))
        }
    #endif
}

/// `Synchronization.Mutex` with a place in the order of locks.
@usableFromInline
package struct RankedMutex<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>
    @usableFromInline let rank: LockRank

    @inlinable
    package init(_ rank: LockRank, _ value: consuming sending Value) {
        mutex = Mutex(value)
        self.rank = rank
    }

    // In place where it is called, as that of `Mutex`: generic code of another module is slow.
    @inlinable
    package borrowing func withLock<Result: ~Copyable, Problem: Error>(
        _ body: (inout sending Value) throws(Problem) -> sending Result
    ) throws(Problem) -> sending Result {
        rank.enter()
        defer { rank.leave() }
        return try mutex.withLock(body)
    }
}
