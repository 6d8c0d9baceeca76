package import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import PromiseProvider

extension FaultLine {
    /// Sends a request by `send`, and does to it and its answer what is planned.
    package func carry(_ send: () async throws -> HTTPClientResponse) async throws -> HTTPClientResponse {
        guard let fault = take() else { return try await send() }
        if case .delay(let delay) = fault { try await Task.sleep(for: delay) }
        if case .status(let status) = fault { return HTTPClientResponse(status: HTTPResponseStatus(statusCode: status)) }
        var response = try await send()
        switch fault {
        case .delay, .status: break
        case .lostAnswer:
            // It is carried out when its answer has come.
            for try await _ in response.body { continue }
            throw HTTPClientError.remoteConnectionClosed
        case .shortReply, .brokenReply:
            var whole = ByteBuffer()
            for try await part in response.body { whole.writeImmutableBuffer(part) }
            if whole.readableBytes == 0 { giveUp() }
            let half = whole.readSlice(length: whole.readableBytes / 2) ?? ByteBuffer()
            response.body = .stream(HalfBody(half: half, isBroken: fault == .brokenReply && whole.readableBytes > 0))
        case .otherVersion:
            if response.headers.contains(name: "ETag") {
                response.headers.replaceOrAdd(name: "ETag", value: "\"0123456789abcdef\"")
                // What listings tell no tag of has its time as its version.
                if response.headers.contains(name: "Last-Modified") {
                    response.headers.replaceOrAdd(name: "Last-Modified", value: "Thu, 01 Jan 1970 00:00:01 GMT")
                }
            } else {
                giveUp()
            }
        case .repeatedRows:
            var whole = ByteBuffer()
            for try await part in response.body { whole.writeImmutableBuffer(part) }
            let repeated = RepeatedRows.of(Array(whole.readableBytesView))
            if let repeated { whole = ByteBuffer(bytes: repeated) } else { giveUp() }
            response.headers.replaceOrAdd(name: "Content-Length", value: "\(whole.readableBytes)")
            response.body = .bytes(whole)
        }
        return response
    }
}

/// The first half of a body, and then its end or a failure.
private struct HalfBody: AsyncSequence, Sendable {
    let half: ByteBuffer
    let isBroken: Bool

    func makeAsyncIterator() -> Iterator { Iterator(rest: half, isBroken: isBroken) }

    struct Iterator: AsyncIteratorProtocol {
        var rest: ByteBuffer?
        let isBroken: Bool

        mutating func next() async throws -> ByteBuffer? {
            defer { rest = nil }
            if let rest, rest.readableBytes > 0 { return rest }
            if isBroken { throw HTTPClientError.remoteConnectionClosed }
            return nil
        }
    }
}
