import Synchronization

/// Whether what reads strangers' bytes can be shut in here.
package final class SandboxWall: Sendable {
    private struct State {
        var stands = false
        var hasWarned = false
    }

    private let state = Mutex(State())
    private let isInstalled: @Sendable () -> Bool
    private let canBeMade: @Sendable () -> Bool
    private let warn: @Sendable () -> Void

    /// `canBeMade` tries it; `warn` is called once, where it is there and cannot be made.
    package init(
        isInstalled: @escaping @Sendable () -> Bool, canBeMade: @escaping @Sendable () -> Bool,
        warn: @escaping @Sendable () -> Void
    ) {
        (self.isInstalled, self.canBeMade, self.warn) = (isInstalled, canBeMade, warn)
    }

    /// Tried again until it stands: that it could not be made once may be a machine that was busy,
    /// and is no reason to do without it for good. Blocks.
    package func stands() -> Bool {
        if state.withLock({ $0.stands }) { return true }
        guard isInstalled() else { return false }
        let stands = canBeMade()
        let isNews = state.withLock { state in
            if stands { state.stands = true }
            defer { if !stands { state.hasWarned = true } }
            return !stands && !state.hasWarned
        }
        if isNews { warn() }
        return stands
    }
}
