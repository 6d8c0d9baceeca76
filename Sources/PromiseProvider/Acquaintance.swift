import PromiseCore
import PromiseSystem
import Synchronization

/// What has to be found out about a server before anything is written there, and not before a folder
/// is listed. Whoever needs it first begins it, everybody else joins, and after a moment it is done
/// without anybody.
package final class Acquaintance: Sendable {
    package typealias Work = @Sendable () async throws(ProviderError) -> Void

    private struct State {
        /// Nil: there is nothing to be found out, or no more.
        var work: Work?
        /// Whoever writes waits for it.
        var isNeeded = false
        var running: Attempt<Result<Void, ProviderError>>?
        var alarm: Task<Void, Never>?
        var isOver = false
    }

    /// A first look around is over by then, as a rule.
    private static let pause = Duration.seconds(5)
    private static let pauseAfterTrouble = Duration.seconds(30)
    /// Of the mount's end.
    private static let patience = Duration.seconds(2)

    /// A leaf, but for the beginning of a task.
    private let state = Mutex(State())

    package init() {}

    deinit { state.withLock { $0.alarm }?.cancel() }

    /// To be done later, instead of what was to be done before. Tried again until it does not throw.
    package func postpone(isNeeded: Bool = true, _ work: @escaping Work) {
        let alarm = Task { [weak self] in
            var pause = Acquaintance.pause
            while (try? await Task.sleep(for: pause)) != nil, let self, self.isOwed {
                do throws(ProviderError) { try await self.finish() } catch {}
                pause = Acquaintance.pauseAfterTrouble
            }
        }
        let before = state.withLock { state in
            let before = state.alarm
            if !state.isOver { (state.work, state.isNeeded, state.alarm) = (work, isNeeded, alarm) }
            return state.isOver ? alarm : before
        }
        before?.cancel()
    }

    private var isOwed: Bool { state.withLock { $0.work != nil && !$0.isOver } }

    /// Returns when what is needed is known; throws what was in the way this time.
    package func complete() async throws(ProviderError) {
        if state.withLock({ $0.isNeeded }) { try await finish() }
    }

    private func finish() async throws(ProviderError) {
        guard let attempt = joined() else { return }
        guard let outcome = await attempt.outcome() else {
            throw ProviderError(.cancelled, "the call was cancelled")
        }
        try outcome.get()
    }

    private func joined() -> Attempt<Result<Void, ProviderError>>? {
        state.withLock { state in
            if let running = state.running { return running }
            guard let work = state.work else { return nil }
            let attempt = Attempt { () async -> Result<Void, ProviderError> in
                do throws(ProviderError) {
                    try await work()
                    self.ended(isDone: true)
                    return .success(())
                } catch {
                    self.ended(isDone: false)
                    return .failure(error)
                }
            }
            state.running = attempt
            return attempt
        }
    }

    private func ended(isDone: Bool) {
        state.withLock { state in
            state.running = nil
            guard isDone else { return }
            (state.work, state.isNeeded) = (nil, false)
            state.alarm?.cancel()
        }
    }

    /// The mount has ended. What is under way may leave something at the server unless it comes to its end.
    package func end() async {
        let running = state.withLock { state in
            state.isOver = true
            state.alarm?.cancel()
            return state.running
        }
        guard let running, await running.outcome(within: Acquaintance.patience) == nil else { return }
        running.cancel()
    }
}
