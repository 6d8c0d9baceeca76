import NIOCore

/// Half of what was announced, then an error.
struct BrokenBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    static let announcedByteCount = 1 << 16

    struct Iterator: AsyncIteratorProtocol {
        var isSent = false

        mutating func next() async throws -> ByteBuffer? {
            if isSent {
                // What was sent is on its way before the connection is cut.
                try await Task.sleep(for: .milliseconds(50))
                throw CancellationError()
            }
            isSent = true
            return ByteBuffer(repeating: UInt8(ascii: "x"), count: BrokenBody.announcedByteCount / 2)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator() }
}
