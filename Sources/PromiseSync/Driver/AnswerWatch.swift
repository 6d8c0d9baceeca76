import PromiseCore
import PromiseSystem
import Synchronization

/// Notices when those who wait for the provider have heard nothing of it for seconds: then it is
/// asked whether it is there, before all of them have waited to their ends.
///
/// It looks only while somebody waits, and now and then, however many calls are made.
package final class AnswerWatch: Sendable {
    static let patience = Duration.seconds(3)
    private static let lookInterval = Duration.milliseconds(1500)
    /// A call that is silent for longer, as a large upload is, is no sign of anything.
    private static let oldest = Duration.seconds(120)

    private struct State {
        var calls: [UInt64: Duration] = [:]
        var callCount: UInt64 = 0
        /// Uptime of the first call after whatever was heard last. Those that were given up count.
        var unheardSince: Duration?
        var isLooking = false
        /// Uptime when it was heard, or somebody wanted to know whether it is there.
        var lastKnown = Duration.zero
        /// Uptime of the last answer that was of use.
        var lastGood: Duration?

        mutating func forget(before time: Duration) {
            calls = calls.filter { $0.value > time }
            if calls.isEmpty { unheardSince = nil }
        }
    }

    /// A leaf: nothing is called while it is held.
    private let state = Mutex(State())
    private let mailbox: Mailbox
    private let clock: any TimeSource

    init(_ mailbox: Mailbox, _ clock: any TimeSource) {
        self.mailbox = mailbox
        self.clock = clock
    }

    /// Somebody calls the provider. The number is for `ended`.
    func began() -> UInt64 {
        let now = clock.uptime()
        let (number, begins) = state.withLock { state in
            state.callCount += 1
            state.calls[state.callCount] = now
            state.unheardSince = state.unheardSince ?? now
            defer { state.isLooking = true }
            return (state.callCount, !state.isLooking)
        }
        if begins { lookLater() }
        return number
    }

    /// `isHeard`: it has answered, whatever it said; else whoever called has given up. `isGood`: what was asked for.
    func ended(_ number: UInt64, isHeard: Bool, isGood: Bool = false) {
        state.withLock { $0.calls[number] = nil }
        if isHeard { self.isHeard(isGood: isGood) }
    }

    /// It needed nobody's answer after all.
    func withdrew(_ number: UInt64) {
        state.withLock { state in
            let begun = state.calls.removeValue(forKey: number)
            if begun == state.unheardSince { state.unheardSince = state.calls.values.min() }
        }
    }

    /// An answer, or bytes of it, came.
    func isHeard(isGood: Bool) {
        let now = clock.uptime()
        state.withLock { state in
            if isGood { state.lastGood = now }
            state.unheardSince = state.calls.isEmpty ? nil : now
            state.lastKnown = now
        }
    }

    /// Uptime of the last answer that was of use; nil: there was none.
    func lastGood() -> Duration? { state.withLock { $0.lastGood } }

    /// Whether nothing has been heard for seconds, as nobody has asked. True only once in a while.
    func isToBeAsked() -> Bool {
        let now = clock.uptime()
        return state.withLock { state in
            guard now - state.lastKnown >= AnswerWatch.patience else { return false }
            state.lastKnown = now
            return true
        }
    }

    /// For how long those who wait have heard nothing; nil: nobody waits.
    func silence() -> Duration? {
        let now = clock.uptime()
        return state.withLock { $0.unheardSince.map { now - $0 } }
    }

    private func lookLater() {
        // What is closed resumes at once, and there is nothing to look at.
        guard !mailbox.isClosed else { return }
        mailbox.send(.wake(after: AnswerWatch.lookInterval) { [weak self] in self?.look() })
    }

    private func look() {
        let silence = silence() ?? .zero
        if silence >= AnswerWatch.patience { mailbox.post(.silenceNoticed) }
        let oldest = clock.uptime() - AnswerWatch.oldest
        let goesOn = state.withLock { state in
            // Who gave up a moment ago may come again.
            if !state.calls.isEmpty || silence >= AnswerWatch.patience { state.forget(before: oldest) }
            state.isLooking = state.unheardSince != nil
            return state.isLooking
        }
        if goesOn { lookLater() }
    }
}
