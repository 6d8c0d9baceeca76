package import PromiseCore

/// Which content a picture is of. The time alone says little: whoever copies with times, or sets one, leaves it as it was.
package struct PictureKey: Hashable, Sendable {
    package var modificationTime: Timestamp
    /// Content edits made here.
    package var edits: UInt64
    /// Of the content file: grows when others replace it, and when it is evicted.
    package var generation: Generation
    /// The provider's; another one when the provider has been told of an edit.
    package var version: ContentVersion?

    package init(modificationTime: Timestamp, edits: UInt64, generation: Generation, version: ContentVersion?) {
        self.modificationTime = modificationTime
        self.edits = edits
        self.generation = generation
        self.version = version
    }

    /// The same content, for certain. Both generation and version change when an edit is sent and then evicted, but also when
    /// somebody else replaces what was sent: that has no picture.
    package func isSameContent(as other: PictureKey) -> Bool {
        guard modificationTime == other.modificationTime, edits == other.edits else { return false }
        return generation == other.generation || version != nil && version == other.version
    }

    /// One line.
    var text: [UInt8] {
        let words = ["promisefs-picture-1", "\(modificationTime.rawValue)", "\(edits)", "\(generation.rawValue)"]
        let version = version.map { "v" + $0.rawValue.utf8.map(hexadecimal).joined() } ?? "-"
        return Array((words + [version]).joined(separator: " ").utf8) + [0x0A]
    }

    /// Nil for what is no such line.
    init?(line: ArraySlice<UInt8>) {
        let words = line.split(separator: 0x20, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 5, words[0] == "promisefs-picture-1", let time = Int64(words[1]), let edits = UInt64(words[2]),
            let number = Generation.RawValue(words[3])
        else { return nil }
        var version: ContentVersion?
        if words[4] != "-" {
            let digits = Array(words[4].utf8.dropFirst())
            let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { place in
                UInt8(String(decoding: digits[place..<min(place + 2, digits.count)], as: UTF8.self), radix: 16)
            }
            version = ContentVersion(String(decoding: bytes, as: UTF8.self))
        }
        self.init(
            modificationTime: Timestamp(rawValue: time), edits: edits, generation: Generation(number), version: version)
    }
}
