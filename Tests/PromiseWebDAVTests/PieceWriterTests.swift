import NIOCore
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization
import Testing

/// What comes of a body is in the sink in order, and soon.
@Suite(.timeLimit(.minutes(5))) struct PieceWriterTests {
    /// Takes bytes in order of their places; refuses what comes at `refused`, and counts what comes after that.
    private final class Sink: ContentSink {
        private let state = Mutex((bytes: [UInt8](), late: 0, isRefusing: false))
        let refused: UInt64?
        init(refused: UInt64? = nil) { self.refused = refused }

        var bytes: [UInt8] { state.withLock { $0.bytes } }
        var lateCount: Int { state.withLock { $0.late } }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProviderError) {
            let isRefused = state.withLock { state in
                if state.isRefusing { state.late += 1 }
                if offset == refused { state.isRefusing = true }
                if !state.isRefusing {
                    precondition(offset == UInt64(state.bytes.count), "pieces come in order")
                    state.bytes += Array(bytes)
                }
                return state.isRefusing
            }
            if isRefused { throw ProviderError(.localDiskFull, "no room") }
        }

        func copy(
            from descriptor: Int32, at sourceOffset: UInt64, to offset: UInt64, count: UInt64
        ) throws(ProviderError) -> UInt64 { 0 }
    }

    private func piece(_ bytes: [UInt8], at offset: UInt64) -> ContentPiece {
        ContentPiece(buffer: ByteBuffer(bytes: bytes), skipped: 0, range: ByteRange(offset: offset, count: UInt64(bytes.count)))
    }

    @Test func piecesAreInTheSinkInOrderAndAllOfThem() async throws {
        let pool = BlockingPool(name: "pieces", threads: 3)
        defer { pool.stop() }
        let sink = Sink()
        let writer = PieceWriter(into: sink, pool: pool)
        var sent: [UInt8] = []
        for number in 0..<400 {
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1 + number * 37)
            try await writer.add(piece(bytes, at: UInt64(sent.count)))
            sent += bytes
        }
        try await writer.finish()
        #expect(sink.bytes == sent)
    }

    /// Or a program that reads from a slow server waits for bytes that came long ago, until half a megabyte has come after them.
    @Test func whatHasComeIsThereWhileMoreIsAwaited() async throws {
        let pool = BlockingPool(name: "pieces", threads: 1)
        defer { pool.stop() }
        let sink = Sink()
        let writer = PieceWriter(into: sink, pool: pool)
        try await writer.add(piece([1, 2, 3], at: 0))
        #expect(sink.bytes == [1, 2, 3], "the first bytes are there at once")
        try await writer.add(piece([4, 5], at: 3))
        while sink.bytes.count < 5 { try await Task.sleep(for: .milliseconds(1)) }
        try await writer.finish()
        #expect(sink.bytes == [1, 2, 3, 4, 5])
    }

    @Test func aPieceThatCannotBeStoredEndsTheBodyAndNothingIsStoredAfterIt() async throws {
        let pool = BlockingPool(name: "pieces", threads: 2)
        defer { pool.stop() }
        let sink = Sink(refused: 2)
        let writer = PieceWriter(into: sink, pool: pool)
        await #expect(throws: ProviderError.self) {
            for offset in 0..<1000 { try await writer.add(piece([UInt8(truncatingIfNeeded: offset)], at: UInt64(offset))) }
            try await writer.finish()
        }
        await writer.stop()
        #expect(sink.bytes == [0, 1] && sink.lateCount == 0)
    }
}
