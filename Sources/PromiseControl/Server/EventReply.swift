import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCore
import PromiseWire
import Synchronization

/// Says how far an operation is. Events closer together than the interval are dropped; the last state is in `done`.
final class ProgressReporter: Sendable {
    private static let interval: Duration = .milliseconds(100)
    private let last = Mutex<ContinuousClock.Instant?>(nil)
    private let continuation: AsyncStream<String>.Continuation

    init(_ continuation: AsyncStream<String>.Continuation) { self.continuation = continuation }

    /// From any thread. `document` is only made when it is sent.
    func report(_ document: () -> ProgressDocument) {
        let now = ContinuousClock.now
        let isDue = last.withLock { last in
            if let previous = last, now - previous < ProgressReporter.interval { return false }
            last = now
            return true
        }
        guard isDue else { return }
        continuation.yield(ServerEvent(name: "progress", data: WireCoding.text(document())).encoded)
    }
}

/// A response of server-sent events: any number of `progress`, then one `done` or `problem`. Comments keep it alive while
/// the operation is silent. When the client goes away, writing fails and the operation is cancelled.
func eventResponse<Document: Encodable & Sendable>(
    _ keepAlive: KeepAlive, _ operation: @escaping @Sendable (ProgressReporter) async throws -> Document
) -> Response {
    var headers = HTTPFields()
    headers[.contentType] = "text/event-stream"
    headers[.cacheControl] = "no-store"
    let body = ResponseBody { writer in
        let (events, continuation) = AsyncStream.makeStream(of: String.self)
        let listener = keepAlive.listen { continuation.yield(ServerEvent.keepAlive) }
        defer { keepAlive.forget(listener) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                continuation.yield(await lastEvent(of: operation, ProgressReporter(continuation)).encoded)
                continuation.finish()
            }
            defer { group.cancelAll() }
            for await event in events { try await writer.write(ByteBuffer(string: event)) }
        }
        try await writer.finish(nil)
    }
    return Response(status: .ok, headers: headers, body: body)
}

private func lastEvent<Document: Encodable & Sendable>(
    of operation: @Sendable (ProgressReporter) async throws -> Document, _ reporter: ProgressReporter
) async -> ServerEvent {
    let problem: ProblemDocument
    do {
        return ServerEvent(name: "done", data: WireCoding.text(try await operation(reporter)))
    } catch let failure as Failure {
        problem = ProblemDocument(failure)
    } catch let thrown as ProblemDocument {
        problem = thrown
    } catch is CancellationError {
        problem = ProblemDocument(Failure(.interrupted, "the daemon is ending; what is left goes on at the next mount"))
    } catch {
        problem = ProblemDocument(Failure(.inputOutput, "the daemon could not go on: \(error)"))
    }
    return ServerEvent(name: "problem", data: WireCoding.text(problem))
}
