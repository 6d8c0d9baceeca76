package import PromiseCore
package import PromiseSystem
import Synchronization

/// How fast bytes may go between a provider and its server, which a person may set while it runs. All requests share it, in
/// the order in which they come. What is on its way already goes on as it began.
///
/// Thread-safe.
package final class LineLimit: Sendable {
    package enum Direction: Sendable { case up, down }

    private struct State {
        var rates = LineRates()
        var up = LineBudget()
        var down = LineBudget()
    }

    private let state = Mutex(State())
    private let clock: any TimeSource

    package init(clock: any TimeSource = SystemClock()) { self.clock = clock }

    package var rates: LineRates { state.withLock { $0.rates } }

    package func set(_ rates: LineRates) { state.withLock { $0.rates = rates } }

    /// Bytes that go at once, so that others wait shortly and what is slow does not seem to have ended; nil: no limit.
    package func slice(_ direction: Direction) -> Int? {
        let rates = rates
        let rate = direction == .up ? rates.up : rates.down
        return rate.map { Int(clamping: min(max($0 / 8, 4 << 10), 256 << 10)) }
    }

    /// Returns when so many more bytes may go, or when the task is cancelled.
    package func wait(for byteCount: Int, _ direction: Direction) async {
        let now = clock.uptime()
        let pause: Duration = state.withLock { state in
            switch direction {
            case .up: state.up.take(byteCount, at: now, rate: state.rates.up)
            case .down: state.down.take(byteCount, at: now, rate: state.rates.down)
            }
        }
        if pause > .zero { try? await Task.sleep(for: pause) }
    }
}

/// When the next bytes may go. Pure.
package struct LineBudget: Sendable {
    /// What was not used is not saved up for longer than this.
    private static let burst = Duration.milliseconds(250)

    /// Uptime from which on nothing is owed.
    private var free = Duration.zero

    package init() {}

    /// How long these bytes have to wait for those before them. `rate`: bytes a second; nil: no limit.
    package mutating func take(_ byteCount: Int, at now: Duration, rate: UInt64?) -> Duration {
        guard let rate, rate > 0 else {
            free = .zero
            return .zero
        }
        let start = max(free, now - LineBudget.burst)
        free = start + .nanoseconds(Int64(Double(byteCount) / Double(rate) * 1e9))
        return max(.zero, start - now)
    }
}
