
/// A call that has begun and may never come back, as one to a disk on a network that hangs: nothing
/// ends it. Whoever wants what it returns waits as long as they like, and then leaves it behind.
///
/// A task group cannot do that: it ends when the last of its tasks has ended, also of those that
/// nobody wants any more.
package final class Attempt<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var task: Task<Void, Never>?
        var waiters: [UInt64: CheckedContinuation<Value?, Never>] = [:]
        var waiterCount: UInt64 = 0
        /// Waits whose time was over before they had begun.
        var late: Set<UInt64> = []
    }

    /// A leaf: nothing is called while it is held.
    private let state = RankedMutex(.leaf, State())

    /// Begins `body` at once.
    package init(_ body: @escaping @Sendable () async -> Value) {
        let task = Task { self.end(await body()) }
        state.withLock { $0.task = task }
    }

    /// Asks the call to end, which it may not hear. Who waits goes on waiting.
    package func cancel() { state.withLock { $0.task }?.cancel() }

    /// What the call returned; nil when it has not within `limit` (nil: for ever), or the task that
    /// waits was cancelled.
    package func outcome(within limit: Duration? = nil) async -> Value? {
        let number = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        let alarm = limit.map { limit in
            Task {
                guard (try? await Task.sleep(for: limit)) != nil else { return }
                self.leave(number)
            }
        }
        defer {
            alarm?.cancel()
            state.withLock { _ = $0.late.remove(number) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: Value?? = state.withLock { state in
                    if let value = state.value { return .some(value) }
                    if state.late.contains(number) || Task.isCancelled { return .some(nil) }
                    state.waiters[number] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            leave(number)
        }
    }

    private func leave(_ number: UInt64) {
        let waiter = state.withLock { state in
            let waiter = state.waiters.removeValue(forKey: number)
            if waiter == nil { state.late.insert(number) }
            return waiter
        }
        waiter?.resume(returning: nil)
    }

    private func end(_ value: Value) {
        let waiters = state.withLock { state in
            state.value = value
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }
}
