import HeapModule
import Synchronization

/// Those who wait for a time, of whom the engine's thread takes care.
struct Sleepers {
    private struct Sleeper: Comparable {
        var due: Duration
        var number: Int
        var resume: @Sendable () -> Void

        static func < (left: Sleeper, right: Sleeper) -> Bool {
            (left.due, left.number) < (right.due, right.number)
        }

        static func == (left: Sleeper, right: Sleeper) -> Bool { left.number == right.number }
    }

    private var heap = Heap<Sleeper>()
    private var count = 0

    mutating func add(_ resume: @escaping @Sendable () -> Void, at due: Duration) {
        count += 1
        heap.insert(Sleeper(due: due, number: count, resume: resume))
    }

    /// Resumes whose time has come. Returns the earlier of `next` and how long the next one sleeps.
    mutating func resume(at now: Duration, orWait next: Duration?) -> Duration? {
        while let first = heap.min, first.due <= now {
            heap.removeMin()
            first.resume()
        }
        guard let first = heap.min else { return next }
        return min(next ?? first.due - now, first.due - now)
    }

    mutating func resumeAll() {
        while let first = heap.popMin() { first.resume() }
    }
}

extension Mailbox {
    /// Returns after a while, or when the task is cancelled.
    func sleep(for time: Duration) async {
        let nap = Nap()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard nap.begin(continuation) else { return continuation.resume() }
                send(.wake(after: time) { nap.end() })
            }
        } onCancel: {
            nap.end()
        }
    }
}

/// One sleep, which ends once, by the time or by cancellation.
private final class Nap: Sendable {
    private let state = Mutex<(isOver: Bool, continuation: CheckedContinuation<Void, Never>?)>(
        (false, nil))

    /// False when it is over already.
    func begin(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return !state.isOver
        }
    }

    func end() {
        let continuation = state.withLock { state in
            state.isOver = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}
