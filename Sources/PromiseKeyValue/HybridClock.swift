package import PromiseCore

/// A moment by a hybrid logical clock (Kulkarni, Demirbas and others, 2014): near the time of day,
/// and after all that was seen.
package struct HybridTime: Hashable, Comparable, Sendable {
    /// Since 1970. What JSON numbers hold exactly everywhere.
    package static let millisecondsMax: UInt64 = 1 << 53 - 1

    package var milliseconds: UInt64
    package var counter: UInt32

    package init(milliseconds: UInt64, counter: UInt32) {
        self.milliseconds = milliseconds
        self.counter = counter
    }

    init(_ time: Timestamp) {
        self.init(milliseconds: UInt64(max(0, time.rawValue) / 1_000_000), counter: 0)
    }

    var successor: HybridTime {
        if counter < .max { return HybridTime(milliseconds: milliseconds, counter: counter + 1) }
        return HybridTime(
            milliseconds: min(milliseconds + 1, HybridTime.millisecondsMax), counter: 0)
    }

    package static func < (left: HybridTime, right: HybridTime) -> Bool {
        (left.milliseconds, left.counter) < (right.milliseconds, right.counter)
    }
}

/// When something was written, and by which machine: no two writes of one key have the same.
package struct Stamp: Hashable, Comparable, Sendable {
    package var time: HybridTime
    package var machine: Key

    package init(time: HybridTime, machine: Key) {
        self.time = time
        self.machine = machine
    }

    package static func < (left: Stamp, right: Stamp) -> Bool {
        (left.time, left.machine) < (right.time, right.machine)
    }
}

/// The clock of one machine. A machine whose time of day is wrong by more than `driftMax` pulls
/// nobody's clock with it, and its own comes back when that is mended. Nothing is lost by that: who
/// writes a key writes it after what was under it.
package struct HybridClock: Hashable, Sendable {
    package static let driftMax: UInt64 = 3_600_000

    package private(set) var latest: HybridTime

    package init(latest: HybridTime = HybridTime(milliseconds: 0, counter: 0)) {
        self.latest = latest
    }

    /// A moment after all earlier ones of this clock, and after `other`.
    package mutating func tick(at time: Timestamp, after other: HybridTime?) -> HybridTime {
        let now = HybridTime(time)
        if !isNear(latest, now) { latest = now }
        latest = max(now, latest.successor)
        guard let other, latest <= other else { return latest }
        if isNear(other, now) { latest = other.successor }
        return other.successor
    }

    package mutating func observe(_ other: HybridTime, at time: Timestamp) {
        if other > latest, isNear(other, HybridTime(time)) { latest = other }
    }

    private func isNear(_ other: HybridTime, _ now: HybridTime) -> Bool {
        other.milliseconds <= now.milliseconds + HybridClock.driftMax
    }
}
