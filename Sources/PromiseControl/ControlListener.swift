import Glibc
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// Hummingbird's server by itself. Its `Application` does the same and keeps a clock for the `Date` field, which wakes the
/// process every second although nobody asks; here the time is told when a reply is made.
func controlListener(
    at socketPath: String, _ routes: ControlRoutes, logger: Logger, ready: @escaping @Sendable () async -> Void
) throws -> any Service {
    let responder = routes.router().buildResponder()
    return try HTTPServerBuilder.http1().buildServer(
        configuration: ServerConfiguration(address: .unixDomainSocket(path: socketPath), serverName: "promisefs"),
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger
    ) { request, writer, channel in
        let context = ControlRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        var response: Response
        do {
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
        try await writer.write(response: response.head, body: response.body)
    } onServerRunning: { _ in
        await ready()
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
