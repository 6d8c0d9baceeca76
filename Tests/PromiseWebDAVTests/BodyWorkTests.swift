import NIOCore
import NIOHTTP1
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Testing

/// What takes its time with a whole body is done by threads that may, not by that of the connections:
/// every other request waited meanwhile.
struct BodyWorkTests {
    /// How many bytes a body of a request has, and whether the pool made it.
    private func body(byteCount: Int) async throws -> (byteCount: Int, isOfPool: Bool) {
        let pool = BlockingPool(manual: "bodies")
        let payload = Payload.bytes([UInt8](repeating: 1, count: byteCount))
        let task = Task { () -> Int in
            guard case .bytes(let buffer, _) = try await payload.body(inMemoryUpTo: .max, pool: pool) else { return 0 }
            return buffer.readableBytes
        }
        let isOfPool = try await carriesOut(pool)
        return (try await task.value, isOfPool)
    }

    /// Whether it is given something to do.
    private func carriesOut(_ pool: BlockingPool) async throws -> Bool {
        for _ in 0..<500 where !pool.hasJobs { try await Task.sleep(for: .milliseconds(1)) }
        return pool.runNext()
    }

    @Test func aLargeObjectIsCopiedIntoItsRequestByThePool() async throws {
        #expect(try await body(byteCount: 1 << 20) == (1 << 20, true))
        #expect(try await body(byteCount: 100) == (100, false))
    }

    @Test func aLargeObjectIsCopiedOutOfItsReplyByThePool() async throws {
        let pool = BlockingPool(manual: "bodies")
        let reply = HTTPReply(status: 200, headers: [:], body: .init(repeating: 1, count: 8 << 20))
        let task = Task { await pool.bytes(of: reply).count }
        #expect(try await carriesOut(pool))
        #expect(await task.value == 8 << 20)
    }
}
