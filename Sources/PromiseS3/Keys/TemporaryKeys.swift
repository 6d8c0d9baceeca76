package import Logging
import PromiseCore
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Access keys that end, for those who sign: joins `KeyRenewal`, which decides, and somebody who asks for them.
package final class TemporaryKeys: Sendable {
    private typealias Result = Swift.Result<AccessKey?, ProviderError>

    private struct State: Sendable {
        var renewal = KeyRenewal()
        var askers: [KeyRenewal.Asker: CheckedContinuation<Result, Never>] = [:]
        var count: KeyRenewal.Asker = 0
        /// For when a timer is set.
        var timer: Duration?
    }

    private let ask: @Sendable () async -> KeyService.Answer
    private let logger: Logger
    private let clock: any TimeSource
    private let state = Mutex(State())

    /// `ask` is called once at a time.
    package init(logger: Logger, clock: any TimeSource, ask: @escaping @Sendable () async -> KeyService.Answer) {
        self.ask = ask
        self.logger = logger
        self.clock = clock
    }

    /// Nil: requests are not signed. Waits when there is none, but not for ever. `refused`: a key that the server did not take,
    /// and what it said of it; the same comes again when there is no other.
    package func key(
        after refused: (key: AccessKey?, doubt: KeyRenewal.Doubt)? = nil
    ) async throws(ProviderError) -> AccessKey? {
        if refused == nil, let key = state.withLock({ $0.renewal.key(at: clock.uptime()) }) { return key }
        let asker = state.withLock { state in
            state.count += 1
            return state.count
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.askers[asker] = continuation }
                if Task.isCancelled { return leave(asker) }
                if let refused {
                    handle(.refused(asker, refused.key, refused.doubt))
                } else {
                    handle(.wanted(asker))
                }
            }
        } onCancel: {
            leave(asker)
        }
        return try result.get()
    }

    private func leave(_ asker: KeyRenewal.Asker) {
        handle(.left(asker))
        let continuation = state.withLock { $0.askers.removeValue(forKey: asker) }
        continuation?.resume(returning: .failure(ProviderError(.cancelled, "the call was cancelled")))
    }

    private func handle(_ event: KeyRenewal.Event) {
        var continuations: [(CheckedContinuation<Result, Never>, Result)] = []
        let now = clock.uptime()
        let (isBegun, wake) = state.withLock { state -> (Bool, Duration?) in
            var isBegun = false
            for action in state.renewal.handle(event, at: now, jitter: Double.random(in: 0..<1)) {
                switch action {
                case .renew: isBegun = true
                case .give(let asker, let key):
                    if let one = state.askers.removeValue(forKey: asker) { continuations.append((one, .success(key))) }
                case .refuse(let asker, let error):
                    if let one = state.askers.removeValue(forKey: asker) { continuations.append((one, .failure(error))) }
                }
            }
            guard let wake = state.renewal.wake, state.timer.map({ wake < $0 }) ?? true else { return (isBegun, nil) }
            state.timer = wake
            return (isBegun, wake)
        }
        for (continuation, result) in continuations { continuation.resume(returning: result) }
        if isBegun { Task { await self.renew() } }
        if let wake {
            Task { [weak self] in
                try? await Task.sleep(for: max(wake - now, .milliseconds(1)))
                self?.ring(wake)
            }
        }
    }

    private func ring(_ wake: Duration) {
        state.withLock { if $0.timer == wake { $0.timer = nil } }
        handle(.timePassed)
    }

    private func renew() async {
        switch await ask() {
        case .key(let key, let end):
            logger.debug("there is a new access key", metadata: ["key": "\(key.identifier)"])
            // By the clock that does not jump. A machine that sleeps uses it for too long, and is told so by the server.
            let left = end.map { Duration.nanoseconds($0.nanoseconds(since: clock.now())) }
            handle(.renewed(KeyRenewal.Lease(key: key, end: left.map { clock.uptime() + $0 })))
        case .absent: handle(.absent)
        case .failed(let error, let isFinal):
            logger.warning("the access key cannot be renewed", metadata: ["reason": "\(error.message)"])
            handle(.failed(error, isFinal: isFinal))
        }
    }
}
