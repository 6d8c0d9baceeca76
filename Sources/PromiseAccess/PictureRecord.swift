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

    package var name: String {
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
}
