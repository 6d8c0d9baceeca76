import Glibc
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import PromiseAccess
import PromiseDomain
import PromiseHTTP
import ServiceLifecycle
import Synchronization

/// Hummingbird's server by itself. Its `Application` does the same and keeps a clock for the `Date` field, which wakes the
/// process every second although nobody asks; here the time is told when a reply is made.
func controlListener(
    at socketPath: String, _ routes: ControlRoutes, application: Principal? = nil,
    _ budget: ConnectionBudget, logger: Logger,
    ready: @escaping @Sendable () async -> Void
) throws -> any Service {
    // Most launches never ask anything, and a table of all routes is made of a thousand small pieces.
    let late = Late { routes.responder() }
    let connections = ControlConnections(
        application: application, grants: routes.service.documents?.grants)
    let builder = HTTPServerBuilder {
        LoopBoundChannel(
            base: HTTP1Channel(responder: $0), budget: budget, unreadPatience: routes.keepAlive.unreadPatience)
    }
    return try builder.buildServer(
        configuration: ServerConfiguration(address: .unixDomainSocket(path: socketPath), serverName: "promisefs"),
        eventLoopGroup: controlLoops, logger: logger
    ) { request, writer, channel in
        budget.began(channel)
        defer { budget.ended(channel) }
        let connection = await connections.connection(of: channel)
        let response = try await answer(request, connection, late.value, logger: logger)
        try await writer.write(response: response.head, body: response.body)
    } onServerRunning: { _ in
        await ready()
    }
}

/// Made when it is asked for, once. Thread-safe; `make` is called under the lock, a leaf.
private final class Late<Value: Sendable>: Sendable {
    private let make: @Sendable () -> Value
    private let state = Mutex<Value?>(nil)

    init(_ make: @escaping @Sendable () -> Value) { self.make = make }

    var value: Value {
        state.withLock { state in
            if let made = state { return made }
            let made = make()
            state = made
            return made
        }
    }
}

/// Of the control sockets alone: what a request blocks holds up no transfer.
private let controlLoops = MultiThreadedEventLoopGroup(numberOfThreads: 2)

/// A whole request and its reply, or the beginning of a stream.
func answer(
    _ request: Request, _ connection: ControlConnection, _ responder: some HTTPResponder<ControlRequestContext>, logger: Logger
) async throws -> Response {
    var response: Response
    do {
        let context = ControlRequestContext(source: ControlRequestContext.Source(logger: logger, connection: connection))
        response = try await responder.respond(to: request, context: context)
    } catch let error as HTTPParserError {
        // The server answers it and closes the connection.
        throw error
    } catch {
        logger.debug("a control request failed", metadata: ["reason": "\(error)"])
        response = Response(status: .internalServerError)
    }
    response.headers[.date] = httpDate(time(nil))
    response.headers[.server] = "promisefs"
    return response
}

/// Serves each connection on the thread of its own event loop, so that no request has to wake other threads to be served:
/// that would cost several times what most of them cost.
private struct LoopBoundChannel: ServerChildChannel {
    let base: HTTP1Channel
    let budget: ConnectionBudget
    let unreadPatience: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        budget.add(channel)
        // What is set up here is set up on the event loop, as the base's own handlers are.
        try? channel.pipeline.syncOperations.addHandler(UnreadOutput(patience: unreadPatience))
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await withTaskExecutorPreference(LoopExecutor(loop: value.channel.eventLoop)) {
            await base.handle(value: value, logger: logger)
        }
    }
}

/// A time as RFC 9110, section 5.6.7, has it: `Sun, 06 Nov 1994 08:49:37 GMT`.
func httpDate(_ seconds: time_t) -> String {
    var seconds = seconds
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
    return "\(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
}
