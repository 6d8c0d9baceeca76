import AsyncHTTPClient
import NIOCore
import PromiseProvider

/// A body that goes no faster than a line is to be used.
struct LimitedBody<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element == ByteBuffer {
    let base: Base
    let line: LineLimit
    let direction: LineLimit.Direction

    func makeAsyncIterator() -> Iterator {
        Iterator(base: base.makeAsyncIterator(), line: line, direction: direction)
    }

    struct Iterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        let line: LineLimit
        let direction: LineLimit.Direction
        var rest = ByteBuffer()

        mutating func next() async throws -> ByteBuffer? {
            while rest.readableBytes == 0 {
                guard let part = try await base.next() else { return nil }
                rest = part
            }
            let count = Swift.min(rest.readableBytes, line.slice(direction) ?? .max)
            await line.wait(for: count, direction)
            try Task.checkCancellation()
            return rest.readSlice(length: count)
        }
    }
}

extension LineLimit {
    /// Sends a request by `send`; its body and the reply's go no faster than they may.
    func carry(
        _ request: HTTPClientRequest, _ body: RequestBody?,
        _ send: (HTTPClientRequest) async throws -> HTTPClientResponse
    ) async throws -> HTTPClientResponse {
        var request = request
        request.body = body?.forClient(through: slice(.up) == nil ? nil : self)
        var response = try await send(request)
        if slice(.down) != nil {
            response.body = .stream(LimitedBody(base: response.body, line: self, direction: .down))
        }
        return response
    }
}
