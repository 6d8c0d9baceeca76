import AsyncHTTPClient
import NIOCore
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// A content on its way to an extension, read in pieces on a thread that may block. The last piece leaves only when the source
/// says that it was not written to meanwhile: an extension then never sees the whole of a content that never was.
struct UploadBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    private static let pieceByteCount: UInt64 = 256 << 10

    let source: any ContentSource
    let pool: BlockingPool
    /// Why reading ended early: the client's own error says only that it did.
    let problem = Problem()

    final class Problem: Sendable {
        private let state = Mutex<ProviderError?>(nil)
        var error: ProviderError? { state.withLock { $0 } }
        func note(_ error: ProviderError) { state.withLock { $0 = $0 ?? error } }
    }

    /// What is small is read at once. Throws `.sourceChanged`.
    func forClient() async throws(ProviderError) -> HTTPClientRequest.Body {
        if source.size == 0 {
            try source.validate()
            return .bytes(ByteBuffer())
        }
        guard source.size <= UploadBody.pieceByteCount else { return .stream(self, length: .known(Int64(source.size))) }
        return .bytes(try await pool.run { [self] () throws(ProviderError) in try read(at: 0, source.size) })
    }

    func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    struct Iterator: AsyncIteratorProtocol {
        let body: UploadBody
        var position: UInt64 = 0

        mutating func next() async throws -> ByteBuffer? {
            guard position < body.source.size else { return nil }
            let (start, count) = (position, Swift.min(UploadBody.pieceByteCount, body.source.size - position))
            position += count
            do throws(ProviderError) {
                return try await body.pool.run { [body] () throws(ProviderError) in try body.read(at: start, count) }
            } catch {
                body.problem.note(error)
                throw error
            }
        }
    }

    /// Blocking.
    private func read(at offset: UInt64, _ count: UInt64) throws(ProviderError) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: Int(count))
        var taken = 0
        var failure: SystemError?
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(count)) { room in
            do throws(SystemError) {
                let place = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(count)])
                taken = try readFully(source.descriptor, into: place, at: offset, label: "extension.upload.read")
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
