import PromiseCore
package import PromiseSystem
import Synchronization

/// How long the provider takes from a call to its first bytes, lately: that decides how many fetches of one file run side by
/// side. Far away many of them keep the connection busy; near by they only take the disk from each other, and the one that
/// a program waits for comes later.
///
/// A call that begins among others also waits for them, so only one that begins alone says that the provider is farther away;
/// any says that it is nearer.
///
/// Thread-safe and approximate: when two calls note at once, one of them may be lost.
package final class ProviderDelay: Sendable {
    private static let nearMax = Duration.milliseconds(2)
    private static let slowMin = Duration.milliseconds(4)

    /// In nanoseconds. It falls at once and rises slowly.
    private let average = Atomic<Int64>(0)
    private let runningCount = Atomic<Int>(0)

    /// Who is told of calls and of what comes.
    private let answers: AnswerWatch?

    package init() { answers = nil }
    init(_ answers: AnswerWatch?) { self.answers = answers }

    package var fetchesAtOnce: Int {
        average.load(ordering: .relaxed) < ProviderDelay.nearMax.nanoseconds
            ? HydrationPlan.nearFetchesMax : HydrationPlan.fetchesMax
    }

    /// A request takes so long to begin that a few large ones are better than many side by side.
    package var isSlow: Bool { average.load(ordering: .relaxed) >= ProviderDelay.slowMin.nanoseconds }

    private func note(_ delay: Duration, isAlone: Bool) {
        let (before, now) = (average.load(ordering: .relaxed), delay.nanoseconds)
        if now < before {
            average.store(now, ordering: .relaxed)
        } else if isAlone {
            average.store(before + (now - before) / 4, ordering: .relaxed)
        }
    }

    /// One call, from its beginning to its first bytes.
    package final class Call: Sendable {
        private let delay: ProviderDelay
        private let clock: any TimeSource
        private let begun: Duration
        private let isAlone: Bool
        private let isWaiting = Atomic<Bool>(true)
        private let number: UInt64?

        package init(_ delay: ProviderDelay, _ clock: any TimeSource) {
            self.delay = delay
            self.clock = clock
            begun = clock.uptime()
            let others = delay.runningCount.wrappingAdd(1, ordering: .relaxed).oldValue
            isAlone = others == 0
            number = delay.answers?.began()
        }

        deinit {
            delay.runningCount.wrappingSubtract(1, ordering: .relaxed)
            if let number { delay.answers?.ended(number, isHeard: false) }
        }

        package func bytesCame() {
            delay.answers?.isHeard(isGood: true)
            if isWaiting.exchange(false, ordering: .relaxed) { delay.note(clock.uptime() - begun, isAlone: isAlone) }
        }
    }
}
