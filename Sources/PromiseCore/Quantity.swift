/// Sizes and times as people write them. Pure; the commands and the texts of rules read them with the same two functions.
package enum Quantity {
    /// Bytes: a number with an optional unit. `K`, `M`, `G`, `T` and `KiB`, … are powers of 1024, `kB`, `MB`, … of 1000, as the
    /// GNU tools have it. nil: it is none, or too large.
    package static func bytes(_ text: String) -> UInt64? {
        let (number, unit) = split(text)
        guard let number, let factor = factor(unit.lowercased()) else { return nil }
        let value = number * factor
        guard value.isFinite, value < Double(UInt64.max) else { return nil }
        return UInt64(value.rounded())
    }

    /// A number with a unit, `500ms`, `2s`, `5m`, `1h`, `1d`; without one, seconds. nil: it is none, or over a century.
    package static func duration(_ text: String) -> Duration? {
        let (number, unit) = split(text)
        let factors: [String: Double] = ["": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400]
        guard let number, let factor = factors[unit.lowercased()] else { return nil }
        let seconds = number * factor
        // A century: what is longer is a mistake, and would overflow further down.
        guard seconds.isFinite, seconds <= 3_155_760_000 else { return nil }
        return .milliseconds(Int64((seconds * 1000).rounded()))
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

    /// A number without sign or exponent, and what follows it.
    private static func split(_ text: String) -> (number: Double?, unit: String) {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard digits.contains(where: \.isNumber), digits.count(where: { $0 == "." }) <= 1, digits.first != "." else {
            return (nil, "")
        }
        return (Double(digits), String(text[digits.endIndex...].drop { $0 == " " }))
    }
}
