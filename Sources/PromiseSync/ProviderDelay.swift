import PromiseCore
import PromiseSystem
import Synchronization

/// How long the provider takes from a call to its first bytes, lately: that decides how many fetches of one file run side by
/// side. Far away many of them keep the connection busy; near by they only take the disk from each other, and the one that
/// a program waits for comes later.
///
/// Thread-safe and approximate: when two calls note at once, one of them may be lost.
final class ProviderDelay: Sendable {
    private static let nearMax = Duration.milliseconds(2)

    private let average = Atomic<Int64>(0)

    var fetchesAtOnce: Int {
        average.load(ordering: .relaxed) < ProviderDelay.nearMax.nanoseconds
            ? HydrationPlan.nearFetchesMax : HydrationPlan.fetchesMax
    }

    private func note(_ delay: Duration) {
        let before = average.load(ordering: .relaxed)
        average.store(before + (delay.nanoseconds - before) / 4, ordering: .relaxed)
    }

    /// One call, from its beginning to its first bytes.
    final class Call: Sendable {
        private let delay: ProviderDelay
        private let clock: any TimeSource
        private let begun: Duration
        private let isWaiting = Atomic<Bool>(true)

        init(_ delay: ProviderDelay, _ clock: any TimeSource) {
            self.delay = delay
            self.clock = clock
            begun = clock.uptime()
        }

        func bytesCame() {
            if isWaiting.exchange(false, ordering: .relaxed) { delay.note(clock.uptime() - begun) }
        }
    }
}
