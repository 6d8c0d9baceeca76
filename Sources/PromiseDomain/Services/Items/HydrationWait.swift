import PromiseCore
import PromiseSync
import PromiseSystem
import Synchronization

/// Somebody who waits for content until it is here or until the wait is cancelled, whichever comes
/// first.
final class HydrationWait: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Result<Void, Failure>, Never>?
        var waiter: UInt64?
        var isOver = false
    }

    private let hydrator: Hydrator
    private let node: NodeID
    private let state = Mutex(State())

    init(hydrator: Hydrator, node: NodeID) {
        self.hydrator = hydrator
        self.node = node
    }

    func outcome() async -> Failure? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { start($0) }
        } onCancel: {
            cancel()
        }
        if case .failure(let failure) = result { return failure }
        return nil
    }

    private func start(_ continuation: CheckedContinuation<Result<Void, Failure>, Never>) {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        if isOver {
            continuation.resume(returning: .failure(HydrationWait.cancelled))
            return
        }
        let waiter = hydrator.hydrate(node) { self.finish($0) }
        let isLate = state.withLock { state in
            state.waiter = waiter
            return state.isOver
        }
        if isLate, let waiter { hydrator.detach(waiter, from: node) }
    }

    /// Ends the wait when nothing has come for so long.
    func watch(_ limit: Duration, _ clock: any TimeSource) async {
        var (present, changed) = (UInt64.max, clock.uptime())
        while (try? await Task.sleep(for: min(limit / 4, .seconds(1)))) != nil {
            let now = hydrator.progress(of: node)?.present ?? 0
            if now != present { (present, changed) = (now, clock.uptime()) }
            if clock.uptime() - changed >= limit { return end(HydrationWait.late) }
        }
    }

    private func cancel() { end(HydrationWait.cancelled) }

    private func end(_ failure: Failure) {
        let waiter = state.withLock { $0.waiter }
        finish(.failure(failure))
        if let waiter { hydrator.detach(waiter, from: node) }
    }

    private func finish(_ result: Result<Void, Failure>) {
        let continuation = state.withLock { state in
            state.isOver = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: result)
    }

    private static let cancelled = Failure(.interrupted, "the fetch was cancelled")
    private static let late = Failure(.timedOut, "the provider did not answer in time")
}
