/// Named threads for calls that block. The only way from async code to a blocking call.
///
/// The queue is not bounded here: callers bound what they start (the engine limits operations in flight).
package final class BlockingPool: TaskExecutor {
    private struct Queue {
        var jobs: [@Sendable () -> Void] = []
        var head = 0
        var isStopped = false

        mutating func next() -> (@Sendable () -> Void)? {
            guard head < jobs.count else { return nil }
            let job = jobs[head]
            head += 1
            if head == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                head = 0
            }
            return job
        }
    }

    private let queue = Monitor(Queue())

    private let name: String
    /// Jobs run when somebody says so, in one thread: for simulations.
    private let isManual: Bool

    /// Without threads: jobs wait for `runNext`.
    package init(manual name: String) {
        self.name = name
        isManual = true
    }

    /// Of a pool without threads.
    package var hasJobs: Bool { queue.withLock { $0.head < $0.jobs.count } }

    /// Of a pool without threads: runs the job that waits longest; false when none does.
    package func runNext() -> Bool {
        precondition(isManual, "the pool \(name) has threads, which run its jobs")
        guard let job = queue.withLock({ $0.next() }) else { return false }
        job()
        return true
    }

    package init(name: String, threads: Int) {
        self.name = name
        isManual = false
        precondition(threads > 0, "a pool has at least one thread")
        for index in 0..<threads {
            let thread = OwnedThread(name: "\(name)-\(index)") { [queue] in
                while true {
                    let job: (@Sendable () -> Void)?? = queue.wait { state in
                        if let job = state.next() { return .some(job) }
                        return state.isStopped ? .some(nil) : nil
                    }
                    guard case .some(.some(let work)) = job else { return }
                    work()
                }
            }
            thread.detach()
        }
    }

    /// Lets the threads end when the queued work is done.
    package func stop() { queue.update { $0.isStopped = true } }

    /// Runs `body` on a thread of the pool, without waiting for it; when the pool has been stopped, on one of its own.
    package func submit(_ body: @escaping @Sendable () -> Void) {
        let isStopped = queue.updateForOne { state in
            if !state.isStopped || isManual { state.jobs.append(body) }
            return state.isStopped && !isManual
        }
        // The threads have left, and whoever waits for the body must not wait for ever.
        if isStopped { OwnedThread(name: "\(name)-late") { body() }.detach() }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        submit { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Runs `body` on a thread of the pool and returns what it returns: on this one, when the task runs in the pool. Cancellation
    /// does not interrupt `body`.
    package func run<Value: Sendable, Problem: Error>(
        _ body: @escaping @Sendable () throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        if withUnsafeCurrentTask(body: { $0?.unownedTaskExecutor == asUnownedTaskExecutor() }) { return try body() }
        let outcome: Result<Value, Problem> = await withCheckedContinuation { continuation in
            submit {
                do throws(Problem) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try outcome.get()
    }
}
