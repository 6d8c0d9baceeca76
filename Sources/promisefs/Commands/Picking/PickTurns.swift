/// One picker at a time where there is one terminal, in the order in which they were asked for: of
/// two that read its keys each would have some, and the last one to end leave it as the other had
/// it.
actor PickTurns {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` when its turn comes; throws `CancellationError` when nobody wants it any more.
    func take<Value: Sendable>(
        _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        // Whoever ends hands its turn on.
        if isTaken { await withCheckedContinuation { waiting.append($0) } }
        isTaken = true
        defer { end() }
        try Task.checkCancellation()
        return try await body()
    }

    private func end() {
        if waiting.isEmpty {
            isTaken = false
        } else {
            waiting.removeFirst().resume()
        }
    }
}
