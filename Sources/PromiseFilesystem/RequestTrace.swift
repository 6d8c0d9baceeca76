package import PromiseCore
import Synchronization

/// Tells whoever listens of the requests that a mount has answered. While nobody listens it costs one look at a number.
package final class RequestTrace: Sendable {
    /// A request of the kernel and its answer.
    package struct Event: Sendable {
        /// As in the log: `lookup`, `open`, …
        package var operation: String
        package var node: NodeID
        /// Who asked, in the daemon's view; 0 when the kernel itself did.
        package var process: Int32
        /// From when a thread took it until it was answered, waiting for the provider and for claims included.
        package var duration: Duration
        /// As the caller got it; 0 for success.
        package var errorNumber: Int32

        package init(operation: String, node: NodeID, process: Int32, duration: Duration, errorNumber: Int32) {
            self.operation = operation
            self.node = node
            self.process = process
            self.duration = duration
            self.errorNumber = errorNumber
        }
    }

    private struct Listener { let call: @Sendable (Event) -> Void }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var next: UInt64 = 1
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    package init() {}

    package var isWanted: Bool { count.load(ordering: .relaxed) > 0 }

    /// `body` is called on the threads that serve the mount: it hands on and returns.
    package func listen(_ body: @escaping @Sendable (Event) -> Void) -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = Listener(call: body)
            count.store(state.listeners.count, ordering: .relaxed)
            return state.next
        }
    }

    package func stop(_ listener: UInt64) {
        state.withLock { state in
            state.listeners[listener] = nil
            count.store(state.listeners.count, ordering: .relaxed)
        }
    }

    package func tell(_ event: Event) {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.call(event) }
    }
}
