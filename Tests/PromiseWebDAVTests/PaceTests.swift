import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What a server sends byte by byte holds nobody up for longer than it is worth.
@Suite(.timeLimit(.minutes(5))) struct PaceTests {
    /// Two minutes pass between two looks.
    private final class RushingClock: TimeSource {
        private let time = Mutex(Duration.zero)

        func now() -> Timestamp { SystemClock().now() }
        func uptime() -> Duration {
            time.withLock { time in
                time += .seconds(120)
                return time
            }
        }
    }

    /// An answer to a look that came at a byte a second held up all that waited for it for ten
    /// minutes, while the server was well again.
    @Test(arguments: [(HTTPMethod.PROPFIND, true), (.DELETE, nil), (.GET, nil)] as [(HTTPMethod, Bool?)])
    func aShortAnswerHasAMinuteAndALongOneTen(method: HTTPMethod, isShort: Bool?) async throws {
        let server = ScriptedServer { _ in reply("200 OK", [], "text") }
        defer { server.stop() }
        let address = "http://127.0.0.1:\(server.port)"
        let transport = try HTTPTransport(
            server: address, trust: .system, clock: RushingClock())
        let response = try await transport.send(
            method, address + "/", HTTPHeaders(), body: nil, isRepeatable: true, takesLong: false)
        var found: ProviderError?
        do throws(ProviderError) {
            _ = try await transport.whole(response, method, isShort: isShort)
        } catch {
            found = error
        }
        #expect(found?.code == (method == .GET ? nil : .retry))
        #expect(found?.message.hasSuffix("does not answer \(method) in time") != false)
    }
}
