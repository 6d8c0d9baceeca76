import NIOCore
import NIOHTTP1
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Testing

/// What takes its time with a whole body is done by threads that may, not by that of the connections:
/// every other request waited meanwhile.
@Suite(.timeLimit(.minutes(2))) struct BodyWorkTests {
    /// How many bytes a body of a request has, and whether the pool made it.
    private func body(byteCount: Int, isLarge: Bool) async throws -> (byteCount: Int, isOfPool: Bool) {
        let pool = BlockingPool(manual: "bodies")
        let payload = Payload.bytes([UInt8](repeating: 1, count: byteCount))
        let task = Task { () -> Int in
            guard case .bytes(let buffer, _) = try await payload.body(inMemoryUpTo: .max, pool: pool) else { return 0 }
            return buffer.readableBytes
        }
        if !isLarge { return (try await task.value, pool.runNext()) }
        try await carryOut(pool)
        return (try await task.value, true)
    }

    /// It is given something to do, on a busy machine after a while.
    private func carryOut(_ pool: BlockingPool) async throws {
        for _ in 0..<30_000 where !pool.hasJobs { try await Task.sleep(for: .milliseconds(1)) }
        try #require(pool.runNext())
    }

    @Test func aLargeObjectIsCopiedIntoItsRequestByThePool() async throws {
        #expect(try await body(byteCount: 1 << 20, isLarge: true) == (1 << 20, true))
        #expect(try await body(byteCount: 100, isLarge: false) == (100, false))
    }

    @Test func aLargeObjectIsCopiedOutOfItsReplyByThePool() async throws {
        let pool = BlockingPool(manual: "bodies")
        let reply = HTTPReply(status: 200, headers: [:], body: .init(repeating: 1, count: 8 << 20))
        let task = Task { await pool.bytes(of: reply).count }
        try await carryOut(pool)
        #expect(await task.value == 8 << 20)
    }
}
