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
        let whole = response.headers.first(name: "Content-Range").flatMap { $0.split(separator: "/").last }
            .flatMap { ItemSize.read($0) }
        return whole ?? response.headers.first(name: "Content-Length").flatMap { ItemSize.read($0) }
    }

    /// Up to this size a body is held in memory until it is whole.
    private static let smallMax: UInt64 = 64 << 10

    /// Puts what is wanted of the body into the sink. Throws unless all of it came, and `.corrupted` when a whole content is not
    /// what `digest` says. `isCertain`: nothing is left to be asked about it.
    package func write(
        into sink: any ContentSink, verifiedBy digest: ContentDigest?, pool: BlockingPool, server: String, isCertain: Bool = true
    ) async throws(ProviderError) {
        let start = try start()
        try checkForm(known: sink.size)
        let verifying = digest.map { VerifyingSink(sink, $0) }
        let isSmall = (range?.count ?? size).map { $0 <= ReplyContent.smallMax } ?? false
        do {
            if isSmall {
                let pieces = try await gather(from: start)
                // One way to another thread, which also answers who waits.
                try await pool.run { () throws(ProviderError) in
                    for piece in pieces { try piece.write(into: verifying ?? sink) }
                    try verifying?.verify(what)
                    if isCertain { sink.finish() }
                }
            } else {
                try await pass(from: start, to: PieceWriter(into: verifying ?? sink, pool: pool))
                try verifying?.verify(what)
            }
        } catch {
            throw ProviderError(transport: error, .GET, server: server)
        }
    }

    private func gather(from start: UInt64) async throws -> [ContentPiece] {
        var pieces: [ContentPiece] = []
        var cut = BodyCut(from: start, range, size: size, isPart: isPart)
        for try await part in response.body {
            if let piece = try cut.next(part) { pieces.append(piece) }
            if cut.isDone { break }
        }
        try check(end: cut.position)
        return pieces
    }

    private func pass(from start: UInt64, to writer: PieceWriter) async throws {
        do {
            var cut = BodyCut(from: start, range, size: size, isPart: isPart)
            for try await part in response.body {
                if let piece = try cut.next(part) { try await writer.add(piece) }
                if cut.isDone { break }
            }
            try await writer.finish()
            try check(end: cut.position)
        } catch {
            await writer.stop()
            throw error
        }
    }

    /// 206 (RFC 9110, section 15.3.7), or the range that was asked for with 200, as from `rclone serve s3`. A whole content may
    /// say what range that is, too.
    private var isPart: Bool {
        if response.status.code == 206 { return true }
        guard response.status.code == 200, let range else { return false }
        return ReplyContent.start(response.headers.first(name: "Content-Range")) == range.lower
    }

    /// Where the body begins.
    private func start() throws(ProviderError) -> UInt64 {
        guard isPart else { return 0 }
        guard let range, let start = ReplyContent.start(response.headers.first(name: "Content-Range")), start == range.lower
        else { throw ProviderError(.retry, "\(what): the server sends another range than it was asked for") }
        return start
    }

    /// Throws where the body has another form than the content of `known` bytes: compressed on its
    /// way, which nobody asked for, or another state of it. A range cut out of that has the right
    /// length. What is stored compressed is said to be so, too, and has the size that is known.
    private func checkForm(known: UInt64?) throws(ProviderError) {
        guard let known else { return }
        let coding = response.headers.first(name: "Content-Encoding")?.lowercased() ?? "identity"
        let told = ReplyContent.wholeSize(response)
        guard coding == "identity" || told == known else {
            throw ProviderError(
                .permanent, "\(what): the server sends it compressed, which nobody asked for")
        }
        guard !isPart, let told, told != known else { return }
        throw ProviderError(.retry, "\(what): the server sends \(told) bytes for \(known)")
    }

    private func check(end: UInt64) throws(ProviderError) {
        let expected = range?.upper ?? size ?? end
        guard end >= expected else { throw ProviderError(.retry, "\(what): the server sent \(end) bytes of \(expected)") }
    }

    /// Of `Content-Range: bytes 0-99/1234`.
    private static func start(_ header: String?) -> UInt64? {
        guard let header, header.hasPrefix("bytes ") else { return nil }
        return UInt64(header.dropFirst(6).prefix { $0 != "-" })
    }
}

/// Cuts what is wanted out of the parts of a body, which come in order.
private struct BodyCut {
    /// How far the body has come, as a place in the content.
    private(set) var position: UInt64
    private let start: UInt64
    private let range: ByteRange?
    /// What comes behind it is nobody's.
    private let end: UInt64?
    private let isPart: Bool
    private let clock = SystemClock()
    private let began = SystemClock().uptime()

    /// The body begins at `start`. `isPart`: the server sends the range and nothing else.
    init(from start: UInt64, _ range: ByteRange?, size: UInt64?, isPart: Bool) {
        (position, self.start, self.range, self.isPart) = (start, start, range, isPart)
        end = range?.upper ?? size
    }

    /// To the end where that is near, so that the connection is kept; not further, as a body may have
    /// none. Whoever takes the content refuses what is too much of it.
    var isDone: Bool {
        guard let end else { return false }
        return position > end || position == end && range != nil && !isPart
    }

    /// Nil: nothing of it is wanted. Throws when the body comes too slowly.
    mutating func next(_ part: ByteBuffer) throws -> ContentPiece? {
        guard Pace.isKept(Int(position - start), after: clock.uptime() - began) else { throw HTTPClientError.deadlineExceeded }
        let here = ByteRange(offset: position, count: UInt64(part.readableBytes))
        position = here.upper
        // A server without ranges sends everything.
        let lower = max(here.lower, range?.lower ?? 0)
        let upper = min(here.upper, range?.upper ?? .max)
        guard lower < upper else { return nil }
        return ContentPiece(buffer: part, skipped: Int(lower - here.lower), range: ByteRange(lower, upper))
    }
}
