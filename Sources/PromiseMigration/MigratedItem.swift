import PromiseAccess
package import PromiseCore
import PromiseKeyValue

/// An item of the old storage that the new one has, too.
package struct MigratedItem: Hashable, Sendable {
    package var old: ItemIdentifier
    /// The folder that it is in at the old storage.
    package var parent: ItemIdentifier
    package var name: FileName
    package var kind: NodeKind
    /// Of the old content, in bytes.
    package var size: UInt64
    package var metadata: Metadata
    package var version: ContentVersion
    package var new: ItemIdentifier
    /// The folder that it is in at the new storage.
    package var newParent: ItemIdentifier
    package var newVersion: ContentVersion
    /// What a link says at the new storage.
    package var target: [UInt8]?

    package init(
        _ item: Item, in parent: ItemIdentifier, as made: Item, in newParent: ItemIdentifier
    ) {
        old = item.identifier
        self.parent = parent
        name = item.name
        kind = item.kind
        size = item.size
        metadata = item.metadata
        version = item.version
        new = made.identifier
        self.newParent = newParent
        newVersion = made.version
        target = made.target
    }

    /// What a run that was cut off has made: of which item and version, nobody has noted.
    init(unnoted found: Item, in newParent: ItemIdentifier) {
        var item = found
        (item.identifier, item.version) = (ItemIdentifier(""), ContentVersion(""))
        self.init(item, in: ItemIdentifier(""), as: found, in: newParent)
    }

    /// The same at the new storage, of what the old one has there now.
    func renewed(_ item: Item, in parent: ItemIdentifier) -> MigratedItem {
        var result = self
        (result.old, result.parent) = (item.identifier, parent)
        (result.version, result.metadata) = (item.version, item.metadata)
        return result
    }

    /// Where the new storage has it.
    var place: NewPlace { NewPlace(parent: newParent, name: name) }

    var json: JSON {
        var fields: [Key: JSON] = [
            "old": .string(old.rawValue), "parent": .string(parent.rawValue),
            "new": .string(new.rawValue), "newParent": .string(newParent.rawValue),
            "name": .string(ItemKey.text([name])), "kind": .number(String(kind.rawValue)),
            "size": .number(String(size)), "version": .string(version.rawValue),
            "newVersion": .string(newVersion.rawValue),
            "mode": .number(String(metadata.mode)), "owner": .number(String(metadata.owner)),
            "group": .number(String(metadata.group)),
            "time": .number(String(metadata.modificationTime.rawValue)),
        ]
        fields["target"] = target.map { .string(HexadecimalText.encode($0)) }
        return .map(fields)
    }

    init?(_ json: JSON) {
        guard let old = json["old"]?.text, let parent = json["parent"]?.text,
            let new = json["new"]?.text, let newParent = json["newParent"]?.text,
            let name = json["name"]?.text.flatMap(ItemKey.names)?.first,
            let kind = json["kind"]?.integer(Int.self).flatMap({ NodeKind(rawValue: $0) }),
            let size = json["size"]?.integer(UInt64.self), let version = json["version"]?.text,
            let newVersion = json["newVersion"]?.text,
            let mode = json["mode"]?.integer(UInt32.self),
            let owner = json["owner"]?.integer(UInt32.self),
            let group = json["group"]?.integer(UInt32.self),
            let time = json["time"]?.integer(Int64.self)
        else { return nil }
        self.old = ItemIdentifier(old)
        self.new = ItemIdentifier(new)
        self.name = name
        self.kind = kind
        self.size = size
        self.version = ContentVersion(version)
        self.newVersion = ContentVersion(newVersion)
        metadata = Metadata(
            mode: mode, owner: owner, group: group, modificationTime: Timestamp(rawValue: time))
        self.parent = ItemIdentifier(parent)
        self.newParent = ItemIdentifier(newParent)
        target = json["target"]?.text.flatMap(HexadecimalText.decode)
    }
}

/// A name in a folder of the new storage.
struct NewPlace: Hashable, Sendable {
    var parent: ItemIdentifier
    var name: FileName

    init(parent: ItemIdentifier, name: FileName) {
        (self.parent, self.name) = (parent, name)
    }

    init?(_ json: JSON?) {
        guard let parent = json?["parent"]?.text,
            let name = json?["name"]?.text.flatMap(ItemKey.names)?.first
        else { return nil }
        self.init(parent: ItemIdentifier(parent), name: name)
    }

    var json: JSON {
        .map(["parent": .string(parent.rawValue), "name": .string(ItemKey.text([name]))])
    }
}

/// Bytes of a link's target, which need not be UTF-8: two hexadecimal digits each.
private enum HexadecimalText {
    static func encode(_ bytes: [UInt8]) -> String { bytes.map { hexadecimal($0) }.joined() }

    static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<start + 2], as: UTF8.self)
            guard let byte = UInt8(pair, radix: 16) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}
