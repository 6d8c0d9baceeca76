import PromiseCore

/// How long to wait before a failed attempt is repeated: doubling from `first` to `longest`.
package struct Backoff: Hashable, Sendable {
    package var first: Duration
    package var longest: Duration

    package init(first: Duration = .seconds(1), longest: Duration = .seconds(60)) {
        self.first = first
        self.longest = longest
    }

    /// `attempts` counts the failures so far, from 1.
    package func delay(after attempts: Int) -> Duration {
        precondition(
            attempts >= 1, "a backoff follows at least one failed attempt, not \(attempts)")
        let doublings = min(attempts - 1, 20)
        return min(first * (1 << doublings), longest)
    }
}
