/// Dates as RFC 3339 writes them (a profile of ISO 8601): `2024-02-29`, `2024-02-29T12:00`, with seconds, a fraction and a
/// zone. Without a zone UTC is meant, as the daemon does not know its caller's.
package enum DateLiteral {
    /// Nanoseconds since 1970; nil for what is no date, or one outside 1678 to 2261.
    package static func nanoseconds(_ text: [UInt8]) -> Int64? {
        var rest = text[...]
        guard let year = number(&rest, digits: 4), take("-", &rest), let month = number(&rest, digits: 2), take("-", &rest),
            let day = number(&rest, digits: 2), (1...12).contains(month),
            (1...dayCount(year, month)).contains(day), (1678...2261).contains(year)
        else { return nil }
        var seconds = days(year, month, day) * 86_400
        var fraction: Int64 = 0
        if take("T", &rest) || take("t", &rest) || take(" ", &rest) {
            guard let hour = number(&rest, digits: 2), take(":", &rest), let minute = number(&rest, digits: 2), hour < 24,
                minute < 60
            else { return nil }
            seconds += hour * 3_600 + minute * 60
            if take(":", &rest) {
                guard let second = number(&rest, digits: 2), second <= 60 else { return nil }
                seconds += second
                if take(".", &rest) || take(",", &rest) {
                    guard let value = nanosecondPart(&rest) else { return nil }
                    fraction = value
                }
            }
            guard let offset = zone(&rest) else { return nil }
            seconds -= offset
        }
        guard rest.isEmpty else { return nil }
        return seconds * 1_000_000_000 + fraction
    }

    private static func dayCount(_ year: Int64, _ month: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func zone(_ rest: inout ArraySlice<UInt8>) -> Int64? {
        if rest.isEmpty || take("Z", &rest) || take("z", &rest) { return 0 }
        let sign: Int64
        if take("+", &rest) { sign = 1 } else if take("-", &rest) { sign = -1 } else { return nil }
        guard let hour = number(&rest, digits: 2) else { return nil }
        _ = take(":", &rest)
        guard let minute = number(&rest, digits: 2), hour < 24, minute < 60 else { return nil }
        return sign * (hour * 3_600 + minute * 60)
    }

    private static func nanosecondPart(_ rest: inout ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        var count = 0
        while let byte = rest.first, byte >= 0x30, byte <= 0x39 {
            if count < 9 { value = value * 10 + Int64(byte - 0x30) }
            count += 1
            rest.removeFirst()
        }
        guard count > 0 else { return nil }
        for _ in min(count, 9)..<9 { value *= 10 }
        return value
    }

    private static func take(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private static func number(_ rest: inout ArraySlice<UInt8>, digits: Int) -> Int64? {
        guard rest.count >= digits else { return nil }
        var value: Int64 = 0
        for byte in rest.prefix(digits) {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = value * 10 + Int64(byte - 0x30)
        }
        rest = rest.dropFirst(digits)
        return value
    }

    /// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = year / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
