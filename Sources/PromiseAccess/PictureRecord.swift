import Crypto
package import PromiseCore

/// A document's picture as a hidden object at a provider: what it is called there, and the line
/// before the picture that says of which item and version it is.
///
/// The name is made of what all machines call the item: its identifier, or its place where a store
/// knows places only.
package struct PictureRecord: Hashable, Sendable {
    private static let mark = "promisefs-picture-at-a-provider-1"

    private let item: String
    private let version: ContentVersion

    /// `identifier`: nil where machines do not share it.
    package init(identifier: ItemIdentifier?, path: [FileName], version: ContentVersion) {
        item = identifier.map { "identifier " + PictureRecord.plain($0.rawValue) } ?? "place " + ItemKey.text(path)
        self.version = version
    }

    package var name: String { PictureRecord.name(of: item) }

    private static func name(of item: String) -> String {
        let digest = SHA256.hash(data: Array(item.utf8)).prefix(20)
        return digest.map { hexadecimal($0) }.joined() + ".picture"
    }

    package func bytes(of picture: [UInt8]) -> [UInt8] { heading + picture }

    /// Nil for the picture of another item or version.
    package func picture(in bytes: [UInt8]) -> [UInt8]? {
        let heading = heading
        return bytes.starts(with: heading) ? Array(bytes.dropFirst(heading.count)) : nil
    }

    /// One line, whatever a server calls its versions.
    private var heading: [UInt8] {
        Array("\(PictureRecord.mark) \(PictureRecord.plain(version.rawValue)) \(item)\n".utf8)
    }

    private static func plain(_ text: String) -> String { text.utf8.map { hexadecimal($0) }.joined() }

    // MARK: What is found at a provider

    /// A picture as it is there.
    package struct Found: Hashable, Sendable {
        /// Of this item; nil: of what is at `path`.
        package var identifier: ItemIdentifier?
        package var path: [FileName]
        package var picture: ArraySlice<UInt8>
    }

    private static let lineCountMax = 64 << 10

    /// Nil for what is no picture of an item that is called so.
    package static func read(_ bytes: [UInt8], as name: String) -> Found? {
        guard let end = bytes.prefix(lineCountMax).firstIndex(of: 0x0A) else { return nil }
        let words = String(decoding: bytes[..<end], as: UTF8.self)
            .split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == mark, name == self.name(of: String(words[2])) else { return nil }
        let (item, picture) = (words[2], bytes[(end + 1)...])
        if item.hasPrefix("place ") {
            guard let path = ItemKey.names(String(item.dropFirst(6))) else { return nil }
            return Found(identifier: nil, path: path, picture: picture)
        }
        guard item.hasPrefix("identifier "), let text = text(item.dropFirst(11)) else { return nil }
        return Found(identifier: ItemIdentifier(text), path: [], picture: picture)
    }

    private static func text(_ plain: Substring) -> String? {
        let digits = Array(plain.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16) else { return nil }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
