/// When an extension's program is started, given up and started again. A pure state machine: its owner tells what happened and
/// does what is answered; times are readings of a clock that never jumps.
package struct ExtensionLife: Sendable {
    package enum Phase: Hashable, Sendable {
        /// Not running; to be started at this time.
        case resting(until: Duration)
        case starting(since: Duration)
        case serving(since: Duration)
        case stopped
    }

    package struct Limits: Sendable {
        package var firstRest = Duration.milliseconds(200)
        package var longestRest = Duration.seconds(30)
        /// From its start until it listens.
        package var start = Duration.seconds(10)
        /// Who has served for so long is started again as at first.
        package var proven = Duration.seconds(30)
        /// Calls without an answer, one after the other, after which it is taken to hang.
        package var silences = 3
        package init() {}
    }

    package private(set) var phase: Phase
    /// Why it is not serving, for people; nil before anything went wrong.
    package private(set) var trouble: String?
    private var failures = 0
    private var silences = 0
    private let limits: Limits

    package init(now: Duration, limits: Limits = Limits()) {
        phase = .resting(until: now)
        self.limits = limits
    }

    /// True when the program is to be started now.
    package mutating func beginStart(now: Duration) -> Bool {
        guard case .resting(let until) = phase, now >= until else { return false }
        phase = .starting(since: now)
        silences = 0
        return true
    }

    package mutating func listens(now: Duration) {
        if case .starting = phase { phase = .serving(since: now) }
    }

    /// True when it has not begun to listen in time, and is to be killed.
    package func isLate(now: Duration) -> Bool {
        if case .starting(let since) = phase { return now - since >= limits.start }
        return false
    }

    /// It has ended, or could not be started.
    package mutating func ended(_ why: String, now: Duration) {
        if case .serving(let since) = phase, now - since >= limits.proven { failures = 0 }
        guard phase != .stopped else { return }
        trouble = why
        let rest = min(limits.firstRest * (1 << min(failures, 20)), limits.longestRest)
        failures += 1
        phase = .resting(until: now + rest)
    }

    package mutating func answered() { silences = 0 }

    /// A call got no answer in time. True when the program is to be killed.
    package mutating func fellSilent() -> Bool {
        guard case .serving = phase else { return false }
        silences += 1
        return silences >= limits.silences
    }

    package mutating func stop() { phase = .stopped }
}
