package import PromiseCore
package import PromiseIndex
package import PromiseSystem
import Synchronization

/// How far what the provider is being told has come. Thread-safe.
package final class UploadProgress: Sendable {
    private struct Call {
        var source: UploadSource?
        /// Uptime.
        var begun: Duration

        var lastSign: Duration { max(begun, source?.lastSent ?? begun) }
    }

    private struct State {
        var sources: [NodeID: UploadSource] = [:]
        var calls: [Pending.Subject: Call] = [:]
    }

    /// A server may work on an answer for so long, and nobody has to hear of it.
    private static let patience = Duration.seconds(30)

    private let state = Mutex(State())
    private let clock: any TimeSource

    package init(_ clock: any TimeSource) { self.clock = clock }

    package func began(_ subject: Pending.Subject, of node: NodeID?, sending source: UploadSource?) {
        source?.timeSent(by: clock)
        let call = Call(source: source, begun: clock.uptime())
        state.withLock { state in
            state.calls[subject] = call
            if let node, let source { state.sources[node] = source }
        }
    }

    package func ended(_ subject: Pending.Subject, of node: NodeID?) {
        state.withLock { state in
            state.calls[subject] = nil
            if let node { state.sources[node] = nil }
        }
    }

    /// From 0 to 1; nil when nothing of the node's content is being sent.
    package func of(_ node: NodeID) -> Double? { state.withLock { $0.sources[node] }?.progress }

    /// Since when the provider neither takes bytes nor answers; nil: it was heard a moment ago, or is told nothing.
    package func silentSince(_ subject: Pending.Subject) -> Timestamp? {
        since(state.withLock { $0.calls[subject]?.lastSign })
    }

    /// The same of the call that has waited longest.
    package func silentSince() -> Timestamp? {
        since(state.withLock { $0.calls.values.map(\.lastSign).min() })
    }

    private func since(_ sign: Duration?) -> Timestamp? {
        guard let sign, case let silence = clock.uptime() - sign, silence >= UploadProgress.patience else { return nil }
        return clock.now().advanced(by: .zero - silence)
    }
}
