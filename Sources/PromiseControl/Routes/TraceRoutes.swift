import Hummingbird
import PromiseCore
import PromiseDomain
import PromiseFilesystem
import PromiseSystem
import PromiseWire
import Synchronization

// What requests the mount gets, as they are answered.

extension ControlRoutes {
    /// Requests that a slow reader has not read; those after are counted and not told.
    private static let traceCountMax = 10_000

    func addTraceRoutes(to router: Router<ControlRequestContext>) {
        router.get("v1/trace") { request, context in
            let recording = request.uri.queryParameters["recording"].map { Array($0.utf8) }
            return trace(context, recording)
        }
    }

    private enum Traced: Sendable {
        case request(RequestTrace.Event)
        case alive
    }

    private func trace(_ context: ControlRequestContext, _ recording: [UInt8]?) -> Response {
        streamResponse { [service, blocking, keepAlive] send in
            let (events, continuation) = AsyncStream.makeStream(
                of: Traced.self, bufferingPolicy: .bufferingOldest(ControlRoutes.traceCountMax))
            let lost = LostCount()
            let listener = service.trace.listen(recording: recording, end: { continuation.finish() }) { event in
                if case .enqueued = continuation.yield(.request(event)) { return }
                lost.add()
            }
            defer { service.trace.stop(listener) }
            let beat = keepAlive.listen { continuation.yield(.alive) }
            defer { keepAlive.forget(beat) }
            let end = context.connection.whenClosed { continuation.finish() }
            defer { context.connection.forget(end) }
            try await send(ServerEvent(name: "tracing", data: "{}"))
            for await event in events {
                guard case .request(let request) = event else {
                    try await send(nil)
                    continue
                }
                var document = await blocking.run { TraceDocument(request, service) }
                document.lost = lost.take()
                try await send(ServerEvent(name: "request", data: WireCoding.text(document)))
            }
        }
    }
}

/// How many events found no room.
private final class LostCount: Sendable {
    private let count = Atomic<Int>(0)
    func add() { count.add(1, ordering: .relaxed) }
    /// Nil for none since the last time.
    func take() -> Int? {
        let lost = count.exchange(0, ordering: .relaxed)
        return lost > 0 ? lost : nil
    }
}

extension TraceDocument {
    /// Path and program are those of a moment later, if they are there still.
    fileprivate init(_ event: RequestTrace.Event, _ service: any ControlService) {
        let path = (try? service.currentPath(of: event.node)).flatMap { $0 }.map { PathText($0) }
        let name = event.process > 0 ? readSmallFile(Array("/proc/\(event.process)/comm".utf8)) : nil
        self.init(
            operation: event.operation, node: event.node.rawValue, path: path?.display, pathBytes: path?.bytes,
            process: event.process, program: name.map { escapedForDisplay($0.prefix { $0 != 0x0A }) },
            microseconds: event.duration.nanoseconds / 1000, errorNumber: event.errorNumber)
    }
}
