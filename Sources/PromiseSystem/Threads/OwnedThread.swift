import CPromiseSystem
import Glibc

/// A POSIX thread with a name, for work that blocks: Swift's cooperative pool has two threads here and must not wait.
package final class OwnedThread: Sendable {
    private let handle: pthread_t

    /// Starts at once. `name` is cut to 15 bytes (pthread_setname_np(3)). `stackByteCount`: room for its stack
    /// (pthread_attr_setstacksize(3)), which takes memory only where it is used; nil: as the system gives it.
    package init(name: String, stackByteCount: Int? = nil, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackByteCount { pthread_attr_setstacksize(&attributes, stackByteCount) }
        let context = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, &attributes,
            { raw in
                // Balances the passRetained of init, exactly once: this is the thread's only entry.
                let start = Unmanaged<Start>.fromOpaque(raw!).takeRetainedValue()
                cps_set_thread_name(String(start.name.prefix(15)))
                start.body()
                return nil
            }, context.toOpaque())
        precondition(result == 0, "a thread could not be started: errno \(result)")
        handle = thread
    }

    /// Waits for the thread to end. Call once at most, never from the thread itself.
    package func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself. Instead of `join`.
    package func detach() { pthread_detach(handle) }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}

/// A mutex with a condition: for the few places where a thread waits for a state, which `Synchronization.Mutex` cannot.
package final class Monitor<State>: @unchecked Sendable {
    // Unchecked because `state` is only touched between lock and unlock of `mutex`, which the compiler cannot see.
    private var state: State
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private let rank: LockRank?

    /// `rank`: its place in the order of locks, where it has one.
    package init(_ state: sending State, rank: LockRank? = nil) {
        self.state = state
        self.rank = rank
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    private func lock() {
        rank?.enter()
        pthread_mutex_lock(mutex)
    }

    private func unlock() {
        pthread_mutex_unlock(mutex)
        rank?.leave()
    }

    package func withLock<Value, Problem: Error>(_ body: (inout State) throws(Problem) -> Value) throws(Problem) -> Value {
        lock()
        defer { unlock() }
        return try body(&state)
    }

    /// Changes the state and wakes every waiter.
    package func update<Value>(_ body: (inout State) -> Value) -> Value {
        lock()
        defer {
            pthread_cond_broadcast(condition)
            unlock()
        }
        return body(&state)
    }

    /// Changes the state and wakes one waiter, where any of them will do.
    package func updateForOne<Value>(_ body: (inout State) -> Value) -> Value {
        lock()
        let value = body(&state)
        unlock()
        pthread_cond_signal(condition)
        return value
    }

    /// Waits until `body` returns a value, or until `timeout` has passed (nil: for ever), and returns that value.
    package func wait<Value>(timeout: Duration? = nil, until body: (inout State) -> Value?) -> Value? {
        var deadline = timespec()
        if let timeout {
            clock_gettime(CLOCK_MONOTONIC, &deadline)
            let total = Int64(deadline.tv_nsec) + max(timeout.nanosecondsClamped, 0)
            deadline.tv_sec += Int(total / 1_000_000_000)
            deadline.tv_nsec = Int(total % 1_000_000_000)
        }
        lock()
        defer { unlock() }
        while true {
            if let value = body(&state) { return value }
            if let timeout {
                // The kernel lets whoever waits for no time sleep for its timer slack, 50 µs.
                if timeout <= .zero { return nil }
                if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return body(&state) }
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
    }
}

extension Duration {
    /// For adding to a clock reading without overflow: at most a hundred years.
    fileprivate var nanosecondsClamped: Int64 {
        let seconds = min(max(components.seconds, 0), 3_000_000_000)
        return seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
