package import PromiseProvider
package import PromiseSystem
import Synchronization

/// Puts the pieces of one body into a sink, in order, on threads of a pool while further ones come: as many at a time as have
/// come meanwhile. So the first bytes are there at once, those of a slow server as they come, and a fast one costs few ways
/// between threads.
///
/// Thread-safe; one task adds.
package final class PieceWriter: Sendable {
    private struct State {
        var waiting: [ContentPiece] = []
        /// Of what waits and of what is being written.
        var byteCount: UInt64 = 0
        var isWriting = false
        var hasBegun = false
        var problem: ProviderError?
        /// Who goes on when no more than `byteCount` are left.
        var waiter: (byteCount: UInt64, continuation: CheckedContinuation<Void, Never>)?

        mutating func dropWaiting() {
            byteCount -= PieceWriter.byteCount(of: waiting)
            waiting = []
        }
    }

    /// No more than these are in memory, and one piece.
    private static let byteCountMax: UInt64 = 1 << 20

    private let sink: any ContentSink
    private let pool: BlockingPool
    private let state = Mutex(State())

    package init(into sink: any ContentSink, pool: BlockingPool) {
        self.sink = sink
        self.pool = pool
    }

    /// Returns when there is room for more. Throws what went wrong with a piece before.
    package func add(_ piece: ContentPiece) async throws(ProviderError) {
        let (begins, isFirst) = state.withLock { state in
            guard state.problem == nil else { return (false, false) }
            state.waiting.append(piece)
            state.byteCount += piece.byteCount
            defer { (state.isWriting, state.hasBegun) = (true, true) }
            return (!state.isWriting, !state.hasBegun)
        }
        if begins { pool.submit { self.writeWaiting() } }
        // Who waits for the first bytes must not wait until more have been received, on a processor that is busy with that.
        try await wait(for: isFirst ? 0 : PieceWriter.byteCountMax)
    }

    /// Returns when everything is in the sink.
    package func finish() async throws(ProviderError) { try await wait(for: 0) }

    /// Nothing is put into the sink any more when this returns.
    package func stop() async {
        state.withLock { $0.dropWaiting() }
        try? await wait(for: 0)
    }

    private func wait(for byteCount: UInt64) async throws(ProviderError) {
        if state.withLock({ $0.byteCount > byteCount }) {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if state.byteCount > byteCount { state.waiter = (byteCount, continuation) }
                    return state.byteCount <= byteCount
                }
                if isDone { continuation.resume() }
            }
        }
        if let problem = state.withLock({ $0.problem }) { throw problem }
    }

    private func writeWaiting() {
        let pieces = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        var problem: ProviderError?
        do throws(ProviderError) {
            for piece in pieces { try piece.write(into: sink) }
        } catch {
            problem = error
        }
        let (goesOn, waiter): (Bool, CheckedContinuation<Void, Never>?) = state.withLock { [problem] state in
            state.byteCount -= PieceWriter.byteCount(of: pieces)
            state.problem = state.problem ?? problem
            if state.problem != nil { state.dropWaiting() }
            state.isWriting = !state.waiting.isEmpty
            guard let waiter = state.waiter, state.byteCount <= waiter.byteCount else { return (state.isWriting, nil) }
            state.waiter = nil
            return (state.isWriting, waiter.continuation)
        }
        // In turn with others: a body that comes fast must not keep a thread from those that come slowly.
        if goesOn { pool.submit { self.writeWaiting() } }
        waiter?.resume()
    }

    private static func byteCount(of pieces: [ContentPiece]) -> UInt64 { pieces.reduce(0) { $0 + $1.byteCount } }
}
