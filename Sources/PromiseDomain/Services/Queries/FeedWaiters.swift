import PromiseIndex
import Synchronization

/// Tasks that wait for the change feed to go on.
final class FeedWaiters: ChangeListener {
    private struct State {
        var last: Int64 = 0
        var next: UInt64 = 0
        var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
    }
    private let state = Mutex(State())

    func changed(_ changes: [Change]) {
        if let last = changes.last { told(upTo: last.sequence) }
    }

    var isWanted: Bool { state.withLock { !$0.waiting.isEmpty } }

    func told(upTo sequence: Int64) {
        let waiting = state.withLock { state in
            state.last = sequence
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.yield() }
    }

    /// Returns when a change after `sequence` has been told, or the time is over. `begun`: from here on it must be told.
    func wait(after sequence: Int64, timeout: Duration, begun: () -> Void) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: UInt64? = state.withLock { state in
            if state.last > sequence { return nil }
            state.next += 1
            state.waiting[state.next] = continuation
            return state.next
        }
        guard let number else { return }
        begun()
        let timer = Task {
            try? await Task.sleep(for: timeout)
            continuation.yield()
        }
        for await _ in stream { break }
        timer.cancel()
        state.withLock { $0.waiting[number] = nil }
    }
}
