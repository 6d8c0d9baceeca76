import PromiseCore
import PromiseProvider
import Synchronization

/// Locks that this process holds, so that none is left on the server when it ends in order: it would keep everybody out until
/// it ends by itself.
final class HeldLocks: Sendable {
    struct Lock: Sendable {
        var path: [FileName]
        var isFolder: Bool
        var token: String
    }

    private struct State {
        var locks: [String: Lock] = [:]
        /// Requests for one that are under way.
        var asked = 0
        var isClosing = false
    }

    /// What is under way ends by itself, as a rule.
    private static let patience = Duration.seconds(2)
    private static let pause = Duration.milliseconds(10)

    private let state = Mutex(State())

    /// Asks for a lock by `request`, to its end also when the caller is cancelled: what the server grants then is to be known.
    func ask<Value: Sendable>(
        _ request: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let isClosing = state.withLock { state in
            if !state.isClosing { state.asked += 1 }
            return state.isClosing
        }
        if isClosing { throw ProviderError(.cancelled, "the mount is ending") }
        defer { state.withLock { $0.asked -= 1 } }
        let task = Task { () async -> Result<Value, ProviderError> in
            do throws(ProviderError) { return .success(try await request()) } catch { return .failure(error) }
        }
        return try await task.value.get()
    }

    func add(_ lock: Lock) { state.withLock { $0.locks[lock.token] = lock } }
    func remove(_ token: String) { state.withLock { _ = $0.locks.removeValue(forKey: token) } }
    func contains(_ token: String) -> Bool { state.withLock { $0.locks[token] != nil } }

    /// No more are asked for. Waits a moment for those who have one; then gives back what is left.
    func close(_ unlock: @escaping @Sendable (Lock) async -> Void) async {
        state.withLock { $0.isClosing = true }
        let start = ContinuousClock.now
        while ContinuousClock.now - start < HeldLocks.patience {
            if state.withLock({ $0.locks.isEmpty && $0.asked == 0 }) { return }
            try? await Task.sleep(for: HeldLocks.pause)
        }
        let left = state.withLock { Array($0.locks.values) }
        let unlocking = Task { for lock in left { await unlock(lock) } }
        let end = ContinuousClock.now + HeldLocks.patience
        // A server that does not answer any more ends them itself.
        while ContinuousClock.now < end, state.withLock({ !$0.locks.isEmpty }) { try? await Task.sleep(for: HeldLocks.pause) }
        unlocking.cancel()
    }
}
