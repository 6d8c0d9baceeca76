package import PromiseCore

import Glibc

/// What time it is. Passed to everything that asks, so that a simulation can decide.
package protocol TimeSource: Sendable {
    /// Wall-clock time, as files are stamped with.
    func now() -> Timestamp
    /// Time that never jumps, for deadlines and intervals; its zero is arbitrary.
    func uptime() -> Duration
}

/// The kernel's clocks (clock_gettime(2)).
package struct SystemClock: TimeSource {
    package init() {}

    package func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }

    package func uptime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
