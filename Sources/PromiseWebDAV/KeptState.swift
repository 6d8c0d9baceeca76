package import PromiseCore

/// What a WebDAV server has no word for, kept with a resource as one property of ours: mode, owners, modification time, and
/// where a link points. Servers keep it over a move, and also when another program writes new content; so time and target
/// are believed only together with the entity tag they were stored for.
package struct KeptState: Equatable, Sendable {
    package var metadata: Metadata
    /// A link is a small file whose content is its target.
    package var target: [UInt8]?
    /// The content's version when this was stored; empty for a folder.
    package var version: String

    package var text: String {
        var words = [
            "1", String(metadata.mode, radix: 8), "\(metadata.owner)", "\(metadata.group)",
            "\(metadata.modificationTime.rawValue)",
            "v" + PercentEncoding.encoded(Array(version.utf8)),
        ]
        if let target { words.append("l" + PercentEncoding.encoded(target)) }
        return words.joined(separator: " ")
    }

    package init(metadata: Metadata, target: [UInt8]? = nil, version: String) {
        self.metadata = metadata
        self.target = target
        self.version = version
    }

    /// Nil for what `text` did not write.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 6 || words.count == 7, words[0] == "1", let mode = UInt32(words[1], radix: 8), mode <= 0o7777,
            let owner = UInt32(words[2]), let group = UInt32(words[3]), let time = Int64(words[4]), words[5].hasPrefix("v"),
            let version = PercentEncoding.decoded(words[5].dropFirst())
        else { return nil }
        metadata = Metadata(mode: mode, owner: owner, group: group, modificationTime: Timestamp(nanoseconds: time))
        self.version = String(decoding: version, as: UTF8.self)
        target = nil
        if words.count == 7 {
            guard words[6].hasPrefix("l"), let bytes = PercentEncoding.decoded(words[6].dropFirst()), !bytes.isEmpty else {
                return nil
            }
            target = bytes
        }
    }
}

/// An entity tag (RFC 9110, section 8.8.3) without what servers disagree about: quotes, and whether it is weak. Apache calls
/// a tag weak while the file is younger than a second, and the same tag strong afterwards.
package enum EntityTag {
    package static func opaque(_ tag: String) -> String {
        var rest = tag[...]
        if rest.hasPrefix("W/") { rest = rest.dropFirst(2) }
        if rest.count >= 2, rest.hasPrefix("\""), rest.hasSuffix("\"") { rest = rest.dropFirst().dropLast() }
        return String(rest)
    }
}

/// The dates of HTTP (RFC 9110, section 5.6.7), in the one form that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    package static func timestamp(_ text: String) -> Timestamp? {
        let words = text.split(separator: " ")
        guard words.count == 6, let day = Int(words[1]), let month = months.firstIndex(of: String(words[2])),
            let year = Int(words[3]), (1...31).contains(day), (1600...9999).contains(year)
        else { return nil }
        let clock = words[4].split(separator: ":").compactMap { Int($0) }
        // 60 is a leap second.
        guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2]) else {
            return nil
        }
        // Days since 1970 by the civil calendar, with years that begin in March.
        let shifted = month >= 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 10) % 12) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        return Timestamp(seconds: days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2], nanoseconds: 0)
    }
}
