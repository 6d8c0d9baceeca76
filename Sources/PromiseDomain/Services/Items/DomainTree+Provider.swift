import PromiseCore
import PromiseProvider
import PromiseSync

extension DomainTree {
    /// Asks the provider for what somebody waits for, which may take as long as a request may. One that
    /// has not answered yet is waited for meanwhile: nobody knows what it can do, or whether it is the
    /// storage that the domain is of. `codes`: what is told by a code of its own; all else is told as to
    /// a program on the mount.
    func asking<Value: Sendable>(
        telling codes: [ProviderError.Code: Failure.Code] = [:],
        _ call: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async throws(Failure) -> Value {
        if let failure = engine.connectionFailure { throw failure }
        do throws(ProviderError) {
            return try await withDeadline(patience, "the provider did not answer") {
                [provider] () async throws(ProviderError) in
                try await provider.answered()
                return try await call()
            }
        } catch {
            throw codes[error.code].map { Failure($0, error.message) } ?? error.failure
        }
    }
}
