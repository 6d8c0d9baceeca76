/// Points in time as text.
public enum TimeText {
    /// RFC 3339 in UTC with all nine digits, so that nothing is lost: `2024-02-29T12:00:00.000000001Z`.
    public static func format(nanoseconds: Int64) -> String {
        let billion: Int64 = 1_000_000_000
        let fraction = ((nanoseconds % billion) + billion) % billion
        // The first of all times is no whole second, and there is none before it.
        let seconds = nanoseconds / billion - (nanoseconds % billion < 0 ? 1 : 0)
        let secondOfDay = ((seconds % 86400) + 86400) % 86400
        let (year, month, day) = civil(daysSinceEpoch: (seconds - secondOfDay) / 86400)
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
        let time = "\(padded(secondOfDay / 3600, 2)):\(padded(secondOfDay / 60 % 60, 2)):\(padded(secondOfDay % 60, 2))"
        return "\(date)T\(time).\(padded(fraction, 9))Z"
    }

    /// The proleptic Gregorian date; Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    private static func civil(daysSinceEpoch: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = daysSinceEpoch + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(width - text.count, 0)) + text
    }
}
