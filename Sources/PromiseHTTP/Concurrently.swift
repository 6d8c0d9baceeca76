package import PromiseProvider

/// Runs `body` for each value, a few at a time, and returns what it returns, in no order. The first failure ends it.
package func concurrently<Value: Sendable, Result: Sendable>(
    _ values: [Value], width: Int = 16, _ body: @escaping @Sendable (Value) async throws(ProviderError) -> Result?
) async throws(ProviderError) -> [Result] {
    do {
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            var results: [Result] = []
            var rest = values.makeIterator()
            for _ in 0..<width {
                guard let value = rest.next() else { break }
                group.addTask { try await body(value) }
            }
            while let result = try await group.next() {
                if let result { results.append(result) }
                if let value = rest.next() { group.addTask { try await body(value) } }
            }
            return results
        }
    } catch let error as ProviderError {
        throw error
    } catch {
        throw ProviderError(.cancelled, "the call was cancelled")
    }
}

/// Runs `body` to its end also when the caller was cancelled (a cancellation shield): for requests
/// that take back what a call has left at a server, where nobody would remove it.
package func withCancellationShield<Value: Sendable>(
    _ body: @escaping @Sendable () async -> Value
) async -> Value {
    await Task { await body() }.value
}
