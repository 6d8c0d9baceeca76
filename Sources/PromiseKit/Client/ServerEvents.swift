import AsyncHTTPClient
import NIOCore
public import PromiseWire

/// Server-sent events of one reply, read as fast as they are asked for: a reader who is slow makes the daemon wait, and what
/// nobody reads takes no memory here. One reader at a time; ending the loop or the task ends the request.
public struct ServerEvents: AsyncSequence {
    public typealias Element = ServerEvent
    public typealias Failure = PromiseError

    let response: HTTPClientResponse
    let domain: String

    public func makeAsyncIterator() -> Iterator {
        Iterator(body: response.body.makeAsyncIterator(), domain: domain)
    }

    public struct Iterator: AsyncIteratorProtocol {
        var body: HTTPClientResponse.Body.AsyncIterator
        let domain: String
        private var parser = ServerEventParser()
        private var ready: [ServerEvent] = []
        private var readyStart = 0

        init(body: HTTPClientResponse.Body.AsyncIterator, domain: String) {
            self.body = body
            self.domain = domain
        }

        /// Nil at the end. Throws what the daemon says in an event `problem`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(PromiseError) -> ServerEvent? {
            while readyStart == ready.count {
                ready = []
                readyStart = 0
                do {
                    guard let buffer = try await body.next(isolation: actor) else { return nil }
                    ready = try parser.feed(buffer.readableBytesView)
                } catch {
                    throw PromiseClient.meaning(of: error, domain: domain)
                }
            }
            let event = ready[readyStart]
            readyStart += 1
            if event.name == "problem", let problem = WireCoding.decode(ProblemDocument.self, from: Array(event.data.utf8)) {
                throw PromiseError(problem)
            }
            return event
        }

        public mutating func next() async throws(PromiseError) -> ServerEvent? { try await next(isolation: nil) }
    }
}

extension PromiseClient {
    /// Sends a request whose reply is a stream of events.
    public func stream(
        _ method: String, _ path: String, _ body: (any Encodable & Sendable)? = nil
    ) async throws(PromiseError) -> ServerEvents {
        ServerEvents(response: try await send(method, path, body, deadline: .hours(24 * 365)), domain: domain)
    }

    /// The same with a body that goes on while the reply does.
    func stream(_ method: String, _ path: String, _ body: AsyncStream<ByteBuffer>) async throws(PromiseError) -> ServerEvents {
        let response = try await send(method, path, content: .stream(body, length: .unknown), deadline: .hours(24 * 365))
        return ServerEvents(response: response, domain: domain)
    }
}
