import PromiseSystem

// For tests only.

extension SyncEngine {
    /// Returns when the engine's thread rests, and nothing of the provider's shows here, until
    /// `hold` is let go.
    package func rest(at hold: Hold) async {
        await withCheckedContinuation { continuation in
            mailbox.send(
                .hold {
                    continuation.resume()
                    hold.pass()
                })
        }
    }
}

/// Holds one thread up until it is let go, but not for ever: who holds it may wait for it, for a
/// listing e.g.
package final class Hold: Sendable {
    private enum Phase { case held, letGo, expired }
    private let phase = Monitor(Phase.held)

    package init() {}

    /// False when the thread went on before.
    @discardableResult
    package func letGo() -> Bool {
        phase.update { phase in
            if phase == .held { phase = .letGo }
            return phase == .letGo
        }
    }

    func pass() {
        if phase.wait(timeout: .seconds(2), until: { $0 == .held ? nil : true }) == nil {
            phase.update { $0 = .expired }
        }
    }
}
