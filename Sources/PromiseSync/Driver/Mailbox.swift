import PromiseSystem

/// What other threads tell the engine's thread, in order.
final class Mailbox: Sendable {
    enum Message: Sendable {
        /// `then` is called when the event has been handled.
        case event(Event, then: (@Sendable () -> Void)?)
        /// Resumes something after a while.
        case wake(after: Duration, @Sendable () -> Void)
        /// Holds the thread up, for tests.
        case hold(@Sendable () -> Void)
    }

    private struct State {
        var messages: [Message] = []
        var isClosed = false
        var isWoken = false
    }

    private let state = Monitor(State(), rank: .leaf)

    func post(_ event: Event, then: (@Sendable () -> Void)? = nil) {
        send(.event(event, then: then))
    }

    /// Returns when the event has been handled, and what it changes is in the index.
    func deliver(_ event: Event) async {
        await withCheckedContinuation { continuation in
            post(event) { continuation.resume() }
        }
    }

    /// When it is closed nobody is left to do anything: what was to be resumed is, at once.
    func send(_ message: Message) {
        let isClosed = state.update { state in
            if !state.isClosed { state.messages.append(message) }
            return state.isClosed
        }
        guard isClosed else { return }
        switch message {
        case .event(_, let then): then?()
        case .wake(_, let resume), .hold(let resume): resume()
        }
    }

    var hasMessages: Bool { state.withLock { !$0.messages.isEmpty || $0.isWoken } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Makes the engine look for due work.
    func wake() { state.update { $0.isWoken = true } }

    /// Lets the engine's thread end after the messages posted so far.
    func close() { state.update { $0.isClosed = true } }

    /// The messages since the last call, at the latest after `timeout` (nil: no limit); nil when
    /// closed and empty.
    func take(timeout: Duration?) -> [Message]? {
        let taken: [Message]?? = state.wait(timeout: timeout) { state in
            guard !state.messages.isEmpty || state.isWoken || state.isClosed else { return nil }
            defer {
                state.messages = []
                state.isWoken = false
            }
            if state.messages.isEmpty && state.isClosed { return .some(nil) }
            return .some(state.messages)
        }
        guard let taken else { return [] }
        return taken
    }
}
