package import PromiseCore
import PromiseSystem
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
        /// Which recording the one who asked belongs to, while there are any.
        package var recording: [UInt8]?

        package init(
            operation: String, node: NodeID, process: Int32, duration: Duration, errorNumber: Int32, recording: [UInt8]? = nil
        ) {
            self.operation = operation
            self.node = node
            self.process = process
            self.duration = duration
            self.errorNumber = errorNumber
            self.recording = recording
        }
    }

    private struct Listener {
        let recording: [UInt8]?
        let call: @Sendable (Event) -> Void
        let end: @Sendable () -> Void
    }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var next: UInt64 = 1
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    private let recordingCount = Atomic<Int>(0)
    private let callers = KnownCallers()

    package init() {}

    package var isWanted: Bool { count.load(ordering: .relaxed) > 0 }

    /// `recording`: only what those ask who belong to it. `body` is called on the threads that serve the mount: it hands on and
    /// returns. `end` is called when there are no more.
    package func listen(
        recording: [UInt8]? = nil, end: @escaping @Sendable () -> Void = {}, _ body: @escaping @Sendable (Event) -> Void
    ) -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = Listener(recording: recording, call: body, end: end)
            updateCounts(state)
            return state.next
        }
    }

    package func stop(_ listener: UInt64) {
        state.withLock { state in
            state.listeners[listener] = nil
            updateCounts(state)
        }
    }

    /// The mount has ended.
    package func end() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.end() }
    }

    private func updateCounts(_ state: borrowing State) {
        count.store(state.listeners.count, ordering: .relaxed)
        recordingCount.store(state.listeners.values.count { $0.recording != nil }, ordering: .relaxed)
    }

    /// To be asked while the process waits for its answer: it may end right after.
    package func recording(of process: Int32) -> [UInt8]? {
        guard recordingCount.load(ordering: .relaxed) > 0 else { return nil }
        return callers.facts(of: process, at: SystemClock().uptime()).recording
    }

    package func tell(_ event: Event) {
        for listener in state.withLock({ Array($0.listeners.values) })
        where listener.recording == nil || listener.recording == event.recording {
            listener.call(event)
        }
    }
}
