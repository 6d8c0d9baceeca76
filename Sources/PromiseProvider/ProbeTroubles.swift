import Synchronization

/// Trouble that was met while it was tried what a server does. That a server is away, or that somebody else answers in its
/// place, says nothing of it; what fails again and again at a server that is well is what it does not do.
package final class ProbeTroubles: Sendable {
    private static let countMax = 3

    private let count = Atomic(0)

    package init() {}

    package func forget() { count.store(0, ordering: .relaxed) }

    /// Whether the server has to be tried again before anything is believed of it. `isWell`: it takes and gives a file.
    package func isPassing(_ error: ProviderError, isWell: () async -> Bool) async -> Bool {
        guard error.code != .cancelled, error.code != .offline, await isWell() else { return true }
        return count.wrappingAdd(1, ordering: .relaxed).newValue <= ProbeTroubles.countMax
    }
}
