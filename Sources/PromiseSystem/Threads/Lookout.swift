/// Looks again at the times that it says itself: on a thread of its own, which begins with the
/// first of them, or, for simulations, when somebody says so.
///
/// Any thread may call it. `look` runs on one thread at a time and may block.
package final class Lookout: Sendable {
    package typealias Look = @Sendable () -> Duration?

    private struct State {
        var look: Look?
        /// When it looks next; nil: when it is woken.
        var due: Duration?
        var thread: OwnedThread?
        var isEnded = false
    }

    private let state = Monitor(State())
    private let name: String
    private let clock: any TimeSource
    private let isManual: Bool

    package init(name: String, clock: any TimeSource) {
        (self.name, self.clock, isManual) = (name, clock, false)
    }

    /// Without a thread: somebody calls `lookNow` when it is due.
    package init(manual name: String, clock: any TimeSource) {
        (self.name, self.clock, isManual) = (name, clock, true)
    }

    /// `look` returns when it is to be called again, by the clock's uptime; nil: when `wake` says
    /// so. It is kept, with what it holds, until `end`. Call once.
    package func begin(_ look: @escaping Look) { state.withLock { $0.look = look } }

    /// Looks at that time, or earlier.
    package func wake(at time: Duration) {
        let isEarlier = state.withLock { state in
            guard !state.isEnded else { return false }
            if let due = state.due, due <= time { return false }
            state.due = time
            return true
        }
        guard isEarlier, !isManual else { return }
        state.update { state in
            guard state.thread == nil, !state.isEnded else { return }
            state.thread = OwnedThread(name: name) { [self] in run() }
        }
    }

    /// When it looks next.
    package var due: Duration? { state.withLock { $0.due } }

    /// Looks, whatever the time is. Of one without a thread.
    package func lookNow() {
        let look = state.withLock { state in
            state.due = nil
            return state.look
        }
        if let next = look?() { wake(at: next) }
    }

    /// Looks now: here and at once, where it has no thread.
    package func hurry() {
        if isManual { lookNow() } else { wake(at: clock.uptime()) }
    }

    /// Nothing is looked at from here on; waits for a look that is under way. Never called by `look`.
    package func end() {
        let thread = state.update { state in
            (state.isEnded, state.look, state.due) = (true, nil, nil)
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
    }

    private func run() {
        while true {
            let due = self.due
            let timeout = due.map { max($0 - clock.uptime(), .milliseconds(1)) }
            let isEnded: Bool? = state.wait(timeout: timeout) { state in
                state.isEnded ? true : state.due != due ? false : nil
            }
            if isEnded == true { return }
            if isEnded == nil { lookNow() }
        }
    }
}
