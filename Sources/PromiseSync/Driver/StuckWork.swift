package import PromiseCore

/// When whoever waits for the provider is told that nothing is left but what fails. Pure.
package struct StuckWork: Sendable {
    /// What was refused as the provider was not as believed is looked into, and may go on by that:
    /// others were just moving it, e.g.
    private static let lookPatience = Duration.seconds(5)
    /// What the provider says is not for now passes by itself, e.g. the lock of a program that was
    /// killed: one of ours lasts for half a minute.
    private static let passingPatience = Duration.seconds(40)

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
        return now - begun >= StuckWork.patience(for: code)
    }

    /// For how long what fails so may still go on.
    package static func patience(for code: Failure.Code?) -> Duration {
        switch code {
        case .conflict, .notFound, .stale: lookPatience
        case .timedOut: passingPatience
        default: .zero
        }
    }
}
