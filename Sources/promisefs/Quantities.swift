import ArgumentParser
import PromiseCore

/// A SIZE, as `Quantity.bytes` reads it.
struct ByteSize: ExpressibleByArgument, Sendable, Equatable {
    var bytes: UInt64

    init(bytes: UInt64) { self.bytes = bytes }

    init?(argument: String) {
        guard let bytes = Quantity.bytes(argument) else { return nil }
        self.bytes = bytes
    }

    /// For people: `512 B`, `1.2 MiB`.
    static func text(_ bytes: UInt64) -> String {
        var value = Double(bytes)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        while value >= 1023.95, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return unit == 0 ? "\(bytes) B" : "\(decimal(value)) \(units[unit])"
    }
}

/// A DURATION, as `Quantity.duration` reads it.
struct TimeSpan: ExpressibleByArgument, Sendable, Equatable {
    var duration: Duration

    init?(argument: String) {
        guard let duration = Quantity.duration(argument) else { return nil }
        self.duration = duration
    }

    /// As this type reads it, for handing it on.
    static func argument(_ duration: Duration) -> String { "\(duration.nanoseconds / 1_000_000)ms" }
}

/// How long what is removed can come back: a time, or `off`.
struct RemovedAge: ExpressibleByArgument, Sendable, Equatable {
    /// Nil: it cannot.
    var duration: Duration?

    init?(argument: String) {
        if argument.lowercased() == "off" { return }
        guard let duration = Quantity.duration(argument) else { return nil }
        self.duration = duration > .zero ? duration : nil
    }

    /// As this type reads it.
    var argument: String { duration.map(TimeSpan.argument) ?? "off" }
}

/// One digit after the point, without the C library's locale.
func decimal(_ value: Double) -> String {
    let tenths = UInt64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
}
