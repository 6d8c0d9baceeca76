import Synchronization

/// Beats for streams that are silent: each tells its client then that it lives, and learns that the client has gone. One for
/// all of them, as a timer for each would cost more than most streams do.
final class KeepAlive: Sendable {
    private struct Listener { let beat: @Sendable () -> Void }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var next: UInt64 = 0
        var isBeating = false
    }

    let interval: Duration
    /// How long something may wait to be read before its connection ends.
    let unreadPatience: Duration
    private let state = Mutex(State())

    init(interval: Duration, unreadPatience: Duration = .seconds(60)) {
        (self.interval, self.unreadPatience) = (interval, unreadPatience)
    }

    /// Calls `beat` once in each interval, from any thread. Returns what `forget` takes.
    func listen(_ beat: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isFirst) = state.withLock { state in
            state.next += 1
            state.listeners[state.next] = Listener(beat: beat)
            defer { state.isBeating = true }
            return (state.next, !state.isBeating)
        }
        if isFirst { Task { await run() } }
        return number
    }

    func forget(_ number: UInt64) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }

    /// Until nobody listens: an idle daemon has no timer.
    private func run() async {
        while true {
            try? await Task.sleep(for: interval)
            let listeners = state.withLock { state in
                state.isBeating = !state.listeners.isEmpty
                return Array(state.listeners.values)
            }
            if listeners.isEmpty { return }
            for listener in listeners { listener.beat() }
        }
    }
}
