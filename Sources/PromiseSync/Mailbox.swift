import PromiseSystem

/// What other threads ask of the engine: closures that run on the engine's thread, in order.
final class Mailbox: Sendable {
    typealias Message = @Sendable (SyncEngine) -> Void

    private struct State {
        var messages: [Message] = []
        var isClosed = false
        var isWoken = false
    }

    private let state = Monitor(State())

    func post(_ message: @escaping Message) {
        state.update { if !$0.isClosed { $0.messages.append(message) } }
    }

    /// Makes the engine look for due work.
    func wake() { state.update { $0.isWoken = true } }

    /// Lets the engine's thread end after the messages posted so far.
    func close() { state.update { $0.isClosed = true } }

    /// The messages since the last call, at the latest after `timeout` (nil: no limit); nil when closed and empty.
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
