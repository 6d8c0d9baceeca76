package import NIOCore
package import PromiseSystem

/// What is done with whole bodies: to copy, hash or read one of megabytes would keep the thread of the
/// connections, and with it all other requests, for milliseconds.
extension BlockingPool {
    /// What is shorter costs less than the way to another thread and back.
    private static let shortByteCount = 16 << 10

    /// Runs `body`, whose work grows with `byteCount`: here where that is little, else on a thread of
    /// the pool.
    package func run<Value: Sendable, Problem: Error>(
        over byteCount: Int, _ body: @escaping @Sendable () throws(Problem) -> Value
    ) async throws(Problem) -> Value {
        if byteCount <= BlockingPool.shortByteCount { return try body() }
        return try await run(body)
    }

    package func bytes(of reply: HTTPReply) async -> [UInt8] {
        await run(over: reply.body.count) { Array(reply.body) }
    }

    package func buffer(of bytes: [UInt8]) async -> ByteBuffer {
        await run(over: bytes.count) { ByteBuffer(bytes: bytes) }
    }
}
