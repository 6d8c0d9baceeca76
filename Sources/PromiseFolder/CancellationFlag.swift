import PromiseProvider
import PromiseSystem
import Synchronization

/// Tells work on another thread that nobody waits for it any more.
final class CancellationFlag: Sendable {
    private let isSet = Atomic<Bool>(false)

    func set() { isSet.store(true, ordering: .relaxed) }

    func check() throws(ProviderError) {
        if isSet.load(ordering: .relaxed) {
            throw ProviderError(.cancelled, "the call was cancelled")
        }
    }
}

extension BlockingPool {
    /// One hop to a thread that may block.
    func runUnlessCancelled<Value: Sendable>(
        _ body: @escaping @Sendable () throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        return try await run(body)
    }

    /// As a call that may take minutes, and looks at the flag meanwhile.
    func runTellingCancellation<Value: Sendable>(
        _ body: @escaping @Sendable (CancellationFlag) throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let flag = CancellationFlag()
        let outcome: Result<Value, ProviderError> = await withTaskCancellationHandler {
            do throws(ProviderError) {
                return .success(
                    try await run { () throws(ProviderError) in
                        try flag.check()
                        return try body(flag)
                    })
            } catch {
                return .failure(error)
            }
        } onCancel: {
            flag.set()
        }
        return try outcome.get()
    }
}
