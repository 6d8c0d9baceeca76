import PromiseProvider
import Synchronization

/// Lets so many contents travel at a time; the others wait, first come first served. A call that is cancelled while it waits
/// gives its turn up. Safe from any thread.
final class TransferTurns: Sendable {
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private struct State: Sendable {
        var freeCount: Int
        var lastNumber = 0
        var waiting: [Int: Waiter] = [:]
        /// Cancelled before they began to wait.
        var cancelled: Set<Int> = []
    }

    private let state: Mutex<State>

    init(limit: Int) { state = Mutex(State(freeCount: limit)) }

    /// Runs `body` when it is its turn. Throws `.cancelled` when the task is cancelled before.
    func run<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        guard await begin() else { throw ProviderError(.cancelled, "the call was cancelled") }
        defer { end() }
        return try await body()
    }

    /// False when the task was cancelled meanwhile.
    private func begin() async -> Bool {
        let number: Int? = state.withLock { state in
            if state.freeCount > 0 {
                state.freeCount -= 1
                return nil
            }
            state.lastNumber += 1
            return state.lastNumber
        }
        guard let number else { return true }
        defer { state.withLock { _ = $0.cancelled.remove(number) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                let outcome: Bool? = state.withLock { state in
                    if state.cancelled.contains(number) { return false }
                    // A turn may have become free since.
                    if state.freeCount > 0 {
                        state.freeCount -= 1
                        return true
                    }
                    state.waiting[number] = waiter
                    return nil
                }
                if let outcome { waiter.resume(returning: outcome) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                if let waiter = state.waiting.removeValue(forKey: number) { return waiter }
                state.cancelled.insert(number)
                return nil
            }
            waiter?.resume(returning: false)
        }
    }

    private func end() {
        let next: Waiter? = state.withLock { state in
            guard let first = state.waiting.keys.min(), let waiter = state.waiting.removeValue(forKey: first) else {
                state.freeCount += 1
                return nil
            }
            return waiter
        }
        next?.resume(returning: true)
    }
}
