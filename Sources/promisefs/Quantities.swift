import ArgumentParser
import PromiseCore

/// A SIZE: a number with an optional unit. `K`, `M`, `G`, `T` and `KiB`, … are powers of 1024, `kB`, `MB`, … of 1000, as the
/// GNU tools have it.
struct ByteSize: ExpressibleByArgument, Sendable, Equatable {
    var bytes: UInt64

    init(bytes: UInt64) { self.bytes = bytes }

    init?(argument: String) {
        let (number, unit) = splitNumber(argument)
        guard let number, let factor = ByteSize.factor(unit.lowercased()) else { return nil }
        let value = number * factor
        guard value.isFinite, value < Double(UInt64.max) else { return nil }
        bytes = UInt64(value.rounded())
    }

    private static func factor(_ unit: String) -> Double? {
        if unit.isEmpty || unit == "b" { return 1 }
        guard let letter = unit.first, let power = Array("kmgtpe").firstIndex(of: letter) else { return nil }
        let base: Double
        switch unit.dropFirst() {
        case "", "ib": base = 1024
        case "b": base = 1000
        default: return nil
        }
        return (0...power).reduce(1) { product, _ in product * base }
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

/// A DURATION: a number with a unit, `500ms`, `2s`, `5m`, `1h`, `1d`; without one, seconds.
struct TimeSpan: ExpressibleByArgument, Sendable, Equatable {
    var duration: Duration

    init?(argument: String) {
        let (number, unit) = splitNumber(argument)
        let factors: [String: Double] = ["": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400]
        guard let number, let factor = factors[unit.lowercased()] else { return nil }
        let seconds = number * factor
        // A century: what is longer is a mistake, and would overflow further down.
        guard seconds.isFinite, seconds <= 3_155_760_000 else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }

    /// As this type reads it, for handing it on.
    static func argument(_ duration: Duration) -> String { "\(duration.nanoseconds / 1_000_000)ms" }
}

/// One digit after the point, without the C library's locale.
func decimal(_ value: Double) -> String {
    let tenths = UInt64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
}

/// A number without sign or exponent, and what follows it.
private func splitNumber(_ text: String) -> (number: Double?, unit: String) {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard digits.contains(where: \.isNumber), digits.count(where: { $0 == "." }) <= 1, digits.first != "." else {
        return (nil, "")
    }
    return (Double(digits), text[digits.endIndex...].trimmed)
}
