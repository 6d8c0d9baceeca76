package import PromiseCore

/// When whoever waits for the provider is told that nothing is left but what fails. Pure.
package struct StuckWork: Sendable {
    /// What was refused as the provider was not as believed is looked into, and may go on by that:
    /// others were just moving it, e.g.
    private static let patience = Duration.seconds(5)

    /// Uptime.
    private var since: Duration?

    package init() {}

    /// `isStuck`: nothing is on its way and nothing is being looked at. `code`: why the oldest fails.
    package mutating func isHopeless(
        _ isStuck: Bool, _ code: Failure.Code?, at now: Duration
    ) -> Bool {
        guard isStuck else {
            since = nil
            return false
        }
        let begun = since ?? now
        since = begun
        switch code {
        case .conflict, .notFound, .stale: return now - begun >= StuckWork.patience
        default: return true
        }
    }
}
