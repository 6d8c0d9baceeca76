package import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import PromiseCore
package import PromiseProvider
package import PromiseSystem

/// A content on its way down: the body of a reply to GET, and what was asked for.
package struct ReplyContent: Sendable {
    private let response: HTTPClientResponse
    private let range: ByteRange?
    /// Of the whole content, where the server tells it.
    private let size: UInt64?
    /// What was tried, as the beginning of a sentence.
    private let what: String

    package init(response: HTTPClientResponse, range: ByteRange?, size: UInt64?, what: String) {
        self.response = response
        self.range = range
        self.size = size
        self.what = what
    }

    /// The size of the whole content, of which a reply may hold a part.
    package static func wholeSize(_ response: HTTPClientResponse) -> UInt64? {
        let whole = response.headers.first(name: "Content-Range").flatMap { $0.split(separator: "/").last }.flatMap { UInt64($0) }
        return whole ?? response.headers.first(name: "Content-Length").flatMap { UInt64($0) }
    }

    /// As below, of a whole content. Throws `.corrupted` when it is not what `digest` says.
    package func write(
        into sink: any ContentSink, verifiedBy digest: ContentDigest?, pool: BlockingPool, server: String
    ) async throws(ProviderError) {
        guard let digest else { return try await write(into: sink, pool: pool, server: server) }
        let verifying = VerifyingSink(sink, digest)
        try await write(into: verifying, pool: pool, server: server)
        try verifying.verify(what)
    }

    /// Puts what is wanted of the body into the sink. Throws unless all of it came.
    package func write(into sink: any ContentSink, pool: BlockingPool, server: String) async throws(ProviderError) {
        var position: UInt64 = 0
        if response.status.code == 206 {
            guard let range, let start = ReplyContent.start(response.headers.first(name: "Content-Range")), start == range.lower
            else { throw ProviderError(.retry, "\(what): the server sends another range than it was asked for") }
            position = start
        }
        let writer = PieceWriter(into: sink, pool: pool)
        let end: UInt64
        do {
            end = try await write(from: position, to: writer)
            try await writer.finish()
        } catch {
            await writer.stop()
            throw ProviderError(transport: error, .GET, server: server)
        }
        let expected = range?.upper ?? size ?? end
        guard end >= expected else { throw ProviderError(.retry, "\(what): the server sent \(end) bytes of \(expected)") }
    }

    /// The body starts at `start`; returns where it ended.
    private func write(from start: UInt64, to writer: PieceWriter) async throws -> UInt64 {
        var position = start
        let isPart = response.status.code == 206
        let (clock, began) = (SystemClock(), SystemClock().uptime())
        for try await part in response.body {
            guard Pace.isKept(Int(position - start), after: clock.uptime() - began) else {
                throw HTTPClientError.deadlineExceeded
            }
            let here = ByteRange(offset: position, count: UInt64(part.readableBytes))
            position = here.upper
            // A server without ranges sends everything.
            let lower = max(here.lower, range?.lower ?? 0)
            let upper = min(here.upper, range?.upper ?? .max)
            if lower < upper {
                let taken = ByteRange(lower, upper)
                try await writer.add(ContentPiece(buffer: part, skipped: Int(taken.lower - here.lower), range: taken))
            }
            // To the end where that is near, so that the connection is kept.
            if let range, position >= range.upper, !isPart { break }
        }
        return position
    }

    /// Of `Content-Range: bytes 0-99/1234`.
    private static func start(_ header: String?) -> UInt64? {
        guard let header, header.hasPrefix("bytes ") else { return nil }
        return UInt64(header.dropFirst(6).prefix { $0 != "-" })
    }
}
