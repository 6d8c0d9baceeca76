package import PromiseCore
import PromiseKeyValue

/// What a reference is at the provider: a link whose target says, to people and to every machine,
/// for which document it stands. Where a store keeps links as small files this is what is in them.
package struct ReferenceRecord: Hashable, Sendable {
    package static let schema = 1
    package static let mark = Array("promisefs-reference:".utf8)
    /// As symlink(2) takes.
    package static let byteCountMax = 4_000
    static let about =
        "stands for the item of this storage with the identifier, which was at the path"

    package var key: ItemKey

    package init(_ key: ItemKey) { self.key = key }

    /// Nil for what is an ordinary link, and for what a later version has made.
    package init?(target: [UInt8]) {
        guard target.starts(with: ReferenceRecord.mark),
            let json = JSONReader.read(Array(target.dropFirst(ReferenceRecord.mark.count))),
            let schema = json["schema"]?.integer(Int.self), schema <= ReferenceRecord.schema,
            let key = ItemKey(json), !key.path.isEmpty
        else { return nil }
        self.key = key
    }

    package var target: [UInt8] {
        var fields: [Key: JSON] = [
            "about": .string(ReferenceRecord.about),
            "schema": .number(String(ReferenceRecord.schema)),
        ]
        key.write(to: &fields)
        return ReferenceRecord.mark + JSON.map(fields).encoded
    }

    /// What its link shows in a folder of the mount: never what has the name of something else.
    package func link(
        in folder: [FileName], _ fate: ItemFate, _ path: [FileName]
    ) -> [UInt8] {
        switch fate {
        case .found, .unknown: ItemKey.relativePath(from: folder, to: path)
        case .deleted, .replaced:
            ItemKey.relativePath(
                from: folder,
                to: [".promisefs", fate.rawValue].map { FileName(trusted: Array($0.utf8)) } + path)
        }
    }
}
