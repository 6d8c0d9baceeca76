import AsyncHTTPClient
import NIOCore

// A daemon that is stopped, or stuck, takes connections and requests, and answers none: what it was asked would wait for its
// own deadline, which is minutes or days for calls that may take long.

extension PromiseClient {
    /// With connections of its own: those for calls may all be waiting.
    private static let pings = connections()
    private static let pause = Duration.seconds(2)
    private static let patience = TimeAmount.seconds(6)

    /// Ends with `deadlineExceeded` when the daemon does not answer a question either that takes no time.
    func whileItAnswers<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask(operation: body)
            group.addTask { try await self.throwWhenSilent() }
            defer { group.cancelAll() }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
        }
    }

    private func throwWhenSilent() async throws -> Never {
        while true {
            try await Task.sleep(for: PromiseClient.pause)
            do {
                let reply = try await PromiseClient.pings.execute(
                    request("GET", "ping"), deadline: .now() + PromiseClient.patience)
                // Whatever it is: an older daemon says that there is no such thing.
                _ = try await reply.body.collect(upTo: 1 << 16)
            } catch let error as HTTPClientError where error == .deadlineExceeded {
                throw error
            } catch {
                // The call itself meets what else is wrong.
                continue
            }
        }
    }
}
