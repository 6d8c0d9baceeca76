package import AsyncHTTPClient
package import NIOCore
package import PromiseProvider
package import PromiseSystem
import Synchronization

/// What a request carries.
package enum RequestBody: Sendable {
    /// `of`: what they are a part of, or all, which is told what was sent of it.
    case bytes(ByteBuffer, of: (any ContentSource)? = nil)
    case file(FileBody)

    package init(_ text: String) { self = .bytes(ByteBuffer(string: text)) }

    /// Bytes in memory can be sent again after a redirect.
    package var isRepeatable: Bool { if case .bytes = self { true } else { false } }

    /// `line`: how fast it may go; nil: as fast as it can.
    package func forClient(through line: LineLimit?) -> HTTPClientRequest.Body {
        switch self {
        case .bytes(let buffer, nil) where line == nil: .bytes(buffer)
        case .bytes(let buffer, let source):
            RequestBody.stream(
                PieceBody(buffer: buffer), line, source, UInt64(buffer.readableBytes))
        case .file(let body): RequestBody.stream(body, line, body.source, body.source.size)
        }
    }

    private static func stream<Base: AsyncSequence & Sendable>(
        _ base: Base, _ line: LineLimit?, _ source: (any ContentSource)?,
        _ byteCount: UInt64
    ) -> HTTPClientRequest.Body where Base.Element == ByteBuffer {
        let length = HTTPClientRequest.Body.Length.known(Int64(byteCount))
        guard let line else {
            return .stream(NotedBody(base: base, source: source), length: length)
        }
        let limited = LimitedBody(base: base, line: line, direction: .up)
        return .stream(NotedBody(base: limited, source: source), length: length)
    }
}

/// Tells the source of what the client has taken of it. What is read for a checksum is not sent, and
/// what waits for a slow line is not sent yet.
private struct NotedBody<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element == ByteBuffer {
    let base: Base
    let source: (any ContentSource)?

    func makeAsyncIterator() -> Iterator {
        Iterator(base: base.makeAsyncIterator(), source: source)
    }

    struct Iterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        let source: (any ContentSource)?

        mutating func next() async throws -> ByteBuffer? {
            let piece = try await base.next()
            if let piece { source?.noteSent(UInt64(piece.readableBytes)) }
            return piece
        }
    }
}

/// What is in memory already.
private struct PieceBody: AsyncSequence, Sendable {
    let buffer: ByteBuffer

    func makeAsyncIterator() -> Iterator { Iterator(rest: buffer) }

    struct Iterator: AsyncIteratorProtocol {
        var rest: ByteBuffer

        mutating func next() async throws -> ByteBuffer? {
            let count = Swift.min(rest.readableBytes, Int(FileBody.pieceByteCount))
            return count > 0 ? rest.readSlice(length: count) : nil
        }
    }
}

/// A content on its way up, read in pieces on a thread that may block. The last piece leaves only when the source says that it
/// was not written to meanwhile: no server then ever sees the whole of a content that never was.
package struct FileBody: AsyncSequence, Sendable {
    package typealias Element = ByteBuffer

    package static let pieceByteCount: UInt64 = 256 << 10

    package let source: any ContentSource
    package let pool: BlockingPool
    /// Why reading ended early: the client's own error says only that it did.
    package let problem = Problem()

    package init(source: any ContentSource, pool: BlockingPool) {
        self.source = source
        self.pool = pool
    }

    /// Whether all of it was taken, the last time: who answers before has not stored it, whatever the answer says.
    package var isTaken: Bool { problem.takenCount >= source.size }

    package final class Problem: Sendable {
        private let state = Mutex<ProviderError?>(nil)
        private let taken = Mutex<UInt64>(0)
        fileprivate var takenCount: UInt64 { taken.withLock { $0 } }
        fileprivate func noteTaken(to end: UInt64) { taken.withLock { $0 = end } }
        package var error: ProviderError? { state.withLock { $0 } }
        func note(_ error: ProviderError) { state.withLock { $0 = $0 ?? error } }
    }

    package func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    package struct Iterator: AsyncIteratorProtocol {
        let body: FileBody
        var position: UInt64 = 0

        package mutating func next() async throws -> ByteBuffer? {
            guard position < body.source.size else { return nil }
            body.problem.noteTaken(to: position)
            let (start, count) = (position, Swift.min(FileBody.pieceByteCount, body.source.size - position))
            position += count
            do throws(ProviderError) {
                let piece = try await body.pool.run { [body] () throws(ProviderError) in try body.read(at: start, count) }
                body.problem.noteTaken(to: position)
                return piece
            } catch {
                body.problem.note(error)
                throw error
            }
        }
    }

    /// Blocking. Whoever reads to the end is told whether the file was written to meanwhile.
    package func read(at offset: UInt64, _ count: UInt64) throws(ProviderError) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: Int(count))
        var taken = 0
        var failure: SystemError?
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(count)) { room in
            do throws(SystemError) {
                let place = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(count)])
                taken = try readFully(source.descriptor, into: place, at: offset, label: "http.upload.read")
            } catch {
                failure = error
            }
            return taken
        }
        if let failure { throw ProviderError(.permanent, failure.description) }
        guard taken == Int(count) else {
            throw ProviderError(.sourceChanged, "the file became shorter while it was sent")
        }
        if offset + count == source.size { try source.validate() }
        return buffer
    }
}
