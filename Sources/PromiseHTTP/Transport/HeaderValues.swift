package import PromiseCore

// Values of headers.

/// An entity tag (RFC 9110, section 8.8.3) without what servers disagree about: quotes, and whether it is weak. Apache calls
/// a tag weak while the file is younger than a second, and the same tag strong afterwards.
package enum EntityTag {
    package static func opaque(_ tag: String) -> String {
        let quote = UInt8(ascii: "\"")
        var rest = tag.utf8[...]
        if rest.starts(with: "W/".utf8) { rest = rest.dropFirst(2) }
        if rest.count >= 2, rest.first == quote, rest.last == quote { rest = rest.dropFirst().dropLast() }
        return String(Substring(rest))
    }
}

/// The dates of HTTP (RFC 9110, section 5.6.7), in the one form that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    package static func timestamp(_ text: String) -> Timestamp? {
        var text = text
        // Of bytes, one word after the other: a listing has many.
        return text.withUTF8 { bytes in
            var words = DateWords(rest: bytes[...])
            _ = words.next(" ")
            let (day, month, year) = (words.number(" "), words.next(" "), words.number(" "))
            let (hour, minute, second) = (words.number(":"), words.number(":"), words.number(" "))
            guard let day, let year, let hour, let minute, let second, !words.next(" ").isEmpty, words.rest.isEmpty,
                let place = months.firstIndex(where: { month.elementsEqual($0.utf8) })
            else { return nil }
            return timestamp(year: year, month: place + 1, day: day, clock: [hour, minute, second])
        }
    }

    private struct DateWords {
        var rest: Slice<UnsafeBufferPointer<UInt8>>

        mutating func next(_ separator: Unicode.Scalar) -> Slice<UnsafeBufferPointer<UInt8>> {
            let word = rest.prefix { $0 != UInt8(ascii: separator) }
            rest = rest[word.endIndex...].dropFirst()
            return word
        }

        /// Nil when it is none, or longer than a year.
        mutating func number(_ separator: Unicode.Scalar) -> Int? {
            let word = next(separator)
            guard (1...4).contains(word.count) else { return nil }
            var value = 0
            for byte in word {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
    }

    /// Of the calendar, in UTC; `clock` holds hours, minutes and seconds.
    package static func timestamp(year: Int, month number: Int, day: Int, clock: [Int]) -> Timestamp? {
        // 60 is a leap second.
        guard (1600...9999).contains(year), (1...12).contains(number), (1...31).contains(day), clock.count == 3,
            (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        let month = number - 1
        // Days since 1970 by the civil calendar, with years that begin in March.
        let shifted = month >= 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 10) % 12) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        let seconds = days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
        // What a time holds: 1677 to 2262.
        guard abs(seconds) < Int(Int64.max / 1_000_000_000) else { return nil }
        return Timestamp(seconds: seconds, nanoseconds: 0)
    }
}

/// When a busy server wants to be asked again (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// Seconds; a date is taken for the default. Never longer than ten minutes, whatever the server says.
    package static func delay(_ text: String?) -> Duration? {
        text.flatMap { Int($0) }.map { .seconds(min(max($0, 0), 600)) }
    }
}

/// Two lower-case digits a byte.
package func hexadecimalText(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}
