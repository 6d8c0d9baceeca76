package import PromiseCore

/// One moment, by both clocks. It is passed in, as nothing in the machine reads a clock.
package struct Moment: Hashable, Sendable {
    /// By the wall clock, which may jump: for what is stored, and for people.
    package var time: Timestamp
    /// Since some start, without jumps: for waiting.
    package var uptime: Duration

    package init(time: Timestamp, uptime: Duration) {
        self.time = time
        self.uptime = uptime
    }
}
