package import PromiseSystem

/// Runs a provider call that may hang. After `limit` it is cancelled and left behind, whether it
/// hears that or not, and `.retry` is thrown; `.cancelled` when whoever waits is cancelled.
package func withDeadline<Value: Sendable>(
    _ limit: Duration, _ message: String,
    _ body: @escaping @Sendable () async throws(ProviderError) -> Value
) async throws(ProviderError) -> Value {
    let attempt = Attempt.ofProvider(body)
    guard let outcome = await attempt.outcome(within: limit) else {
        attempt.cancel()
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        throw ProviderError(.retry, message)
    }
    return try outcome.get()
}

extension Attempt {
    /// Of a provider's call.
    package static func ofProvider<Answer: Sendable>(
        _ body: @escaping @Sendable () async throws(ProviderError) -> Answer
    ) -> Attempt where Value == Result<Answer, ProviderError> {
        Attempt {
            do throws(ProviderError) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
    }
}
