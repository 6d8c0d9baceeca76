import PromiseProvider
import PromiseSystem
import Synchronization

/// Finds in the background what listings of large folders do not tell; the next listing tells it then.
final class DetailsFinder: Sendable {
    private struct State {
        var keys: [[UInt8]] = []
        var waiting: Set<[UInt8]> = []
        var isRunning = false
        /// Uptime of the last listing.
        var lastCall = Duration.zero
    }

    /// Who lists folder after folder is hardly held up by looks at what is in them.
    private static let pause = Duration.milliseconds(250)

    /// Between two looks somebody else's requests have a chance.
    private static let batch = 64
    /// What is beyond is asked for again by the next listing. No more than `KnownDetails` keeps until then.
    private static let keysMax = 40_000

    private let state = Mutex(State())

    func find(_ keys: [[UInt8]], for provider: S3Provider) {
        let now = provider.clock.uptime()
        let starts = state.withLock { state in
            state.lastCall = now
            for key in keys where state.waiting.count < DetailsFinder.keysMax && state.waiting.insert(key).inserted {
                state.keys.append(key)
            }
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard starts else { return }
        Task { [weak provider] in
            while let provider {
                await rest(provider.clock)
                guard let batch = next() else { return }
                do throws(ProviderError) {
                    _ = try await provider.look(batch)
                } catch {
                    // The server has trouble; the next listing asks again.
                    stop()
                    return
                }
            }
        }
    }

    /// A pause, when somebody listed something a moment ago.
    private func rest(_ clock: any TimeSource) async {
        guard state.withLock({ $0.lastCall }) + DetailsFinder.pause > clock.uptime() else { return }
        try? await Task.sleep(for: DetailsFinder.pause)
    }

    private func next() -> [[UInt8]]? {
        state.withLock { state in
            var batch: [[UInt8]] = []
            while batch.count < DetailsFinder.batch, let key = state.keys.popLast() {
                if state.waiting.remove(key) != nil { batch.append(key) }
            }
            if batch.isEmpty { state.isRunning = false }
            return batch.isEmpty ? nil : batch
        }
    }

    /// It was told by something else, e.g. when the object was fetched.
    func isFound(_ key: [UInt8]) { state.withLock { _ = $0.waiting.remove(key) } }

    private func stop() { state.withLock { $0 = State() } }
}
