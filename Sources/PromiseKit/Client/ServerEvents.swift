import AsyncHTTPClient
import NIOCore
public import PromiseWire

/// Server-sent events of one reply, read as fast as they are asked for: a reader who is slow makes the daemon wait, and what
/// nobody reads takes no memory here. One reader at a time; ending the loop or the task ends the request.
public struct ServerEvents: AsyncSequence {
    public typealias Element = ServerEvent
    public typealias Failure = PromiseError

    let response: HTTPClientResponse
    let client: PromiseClient
    /// Its daemon is asked whether it lives while nothing comes.
    let isWatched: Bool

    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: BodyReader(response.body, client, isWatched: isWatched))
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let reader: BodyReader
        private var parser = ServerEventParser()
        private var ready: [ServerEvent] = []
        private var readyStart = 0

        fileprivate init(reader: BodyReader) { self.reader = reader }

        /// Nil at the end. Throws what the daemon says in an event `problem`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(PromiseError) -> ServerEvent? {
            while readyStart == ready.count {
                ready = []
                readyStart = 0
                guard let buffer = try await reader.next() else { return nil }
                do throws(ServerEventParser.Overflow) {
                    ready = try parser.feed(buffer.readableBytesView)
                } catch {
                    throw PromiseClient.meaning(of: error, domain: reader.client.domain)
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

/// The body of a reply, a piece after the other.
///
/// Unchecked because it belongs to one reader at a time, who waits for the task that reads.
final class BodyReader: @unchecked Sendable {
    let client: PromiseClient
    private let isWatched: Bool
    private var body: HTTPClientResponse.Body.AsyncIterator

    init(_ body: HTTPClientResponse.Body, _ client: PromiseClient, isWatched: Bool = true) {
        self.body = body.makeAsyncIterator()
        self.client = client
        self.isWatched = isWatched
    }

    /// Nil at the end. `isWatched`: throws, of status 4, when nothing comes and the daemon does not
    /// answer a question either. Who does not read has no limit, as a terminal that is held.
    func next() async throws(PromiseError) -> ByteBuffer? {
        do {
            guard isWatched else { return try await read() }
            return try await client.whileItAnswers { try await self.read() }
        } catch {
            throw PromiseClient.meaning(of: error, domain: client.domain)
        }
    }

    private func read() async throws -> ByteBuffer? { try await body.next() }
}

extension PromiseClient {
    /// Sends a request whose reply is a stream of events.
    public func stream(
        _ method: String, _ path: String, _ body: (any Encodable & Sendable)? = nil
    ) async throws(PromiseError) -> ServerEvents {
        let response = try await send(method, path, body, deadline: .hours(24 * 365))
        return ServerEvents(response: response, client: self, isWatched: true)
    }

    /// The same with a body that goes on while the reply does. What is held by it is held until the
    /// connection ends, also by a daemon that is stopped for a while.
    func stream(
        _ method: String, _ path: String, _ body: AsyncStream<ByteBuffer>
    ) async throws(PromiseError) -> ServerEvents {
        let response = try await send(method, path, content: .stream(body, length: .unknown), deadline: .hours(24 * 365))
        return ServerEvents(response: response, client: self, isWatched: false)
    }
}
