package import PromiseCore
import PromiseHTTP

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
