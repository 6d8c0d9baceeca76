import PromiseCore
import PromiseProvider
import PromiseSync

extension DomainTree {
    /// Asks the provider for what somebody waits for, which may take as long as a request may. `codes`:
    /// what is told by a code of its own; all else is told as to a program on the mount.
    func asking<Value: Sendable>(
        telling codes: [ProviderError.Code: Failure.Code] = [:],
        _ call: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async throws(Failure) -> Value {
        if let failure = engine.connectionFailure { throw failure }
        do throws(ProviderError) {
            return try await withDeadline(patience, "the provider did not answer", call)
        } catch {
            throw codes[error.code].map { Failure($0, error.message) } ?? error.failure
        }
    }
}
