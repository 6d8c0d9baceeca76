import PromiseSystem
import Synchronization

/// Tells who follows the change feed that there is something new. Costs who changes the tree one look at a number while
/// nobody waits.
final class ChangeSignal: Sendable {
    private let last = Atomic<Int64>(0)
    private let waiterCount = Atomic<Int>(0)
    private let monitor = Monitor(false)

    /// The feed has changes up to `sequence`.
    func advance(to sequence: Int64) {
        guard last.load(ordering: .relaxed) < sequence else { return }
        _ = last.max(sequence, ordering: .sequentiallyConsistent)
        // A waiter counts itself before it looks at the number: one of the two sees the other.
        if waiterCount.load(ordering: .sequentiallyConsistent) > 0 { monitor.update { _ in } }
    }

    /// Of a change that was undone, perhaps.
    var newest: Int64 { last.load(ordering: .sequentiallyConsistent) }

    func wake() { monitor.update { $0 = true } }

    /// Returns when the feed may have changes after `sequence`, when somebody called `wake`, or when the time is over: the
    /// newest number, which is of no change when that one was undone.
    func wait(beyond sequence: Int64, timeout: Duration?) -> Int64 {
        waiterCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
        defer { waiterCount.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
        _ = monitor.wait(timeout: timeout) { isWoken -> Bool? in
            if isWoken {
                isWoken = false
                return true
            }
            return last.load(ordering: .sequentiallyConsistent) > sequence ? true : nil
        }
        return last.load(ordering: .sequentiallyConsistent)
    }
}
