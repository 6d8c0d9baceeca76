import PromiseAccess
package import PromiseCore
import PromiseKeyValue

/// An item of the old storage that the new one has, too.
package struct MigratedItem: Hashable, Sendable {
    package var old: ItemIdentifier
    /// At the old storage; nil of the root.
    package var parent: ItemIdentifier?
    package var name: FileName
    package var kind: NodeKind
    /// Of the old content, in bytes.
    package var size: UInt64
    package var metadata: Metadata
    package var version: ContentVersion
    package var new: ItemIdentifier
    /// At the new storage.
    package var newParent: ItemIdentifier?
    package var newVersion: ContentVersion
    /// What a link says at the new storage.
    package var target: [UInt8]?

    package init(_ item: Item, as made: Item, in newParent: ItemIdentifier?) {
        old = item.identifier
        parent = item.parent
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

    /// Whether the old storage has it where it had it, in the same folder of the new one.
    func isPlaced(as item: Item, in newParent: ItemIdentifier?) -> Bool {
        parent == item.parent && name == item.name && kind == item.kind
            && self.newParent == newParent
    }

    var json: JSON {
        var fields: [Key: JSON] = [
            "old": .string(old.rawValue), "new": .string(new.rawValue),
            "name": .string(ItemKey.text([name])), "kind": .number(String(kind.rawValue)),
            "size": .number(String(size)), "version": .string(version.rawValue),
            "newVersion": .string(newVersion.rawValue),
            "mode": .number(String(metadata.mode)), "owner": .number(String(metadata.owner)),
            "group": .number(String(metadata.group)),
            "time": .number(String(metadata.modificationTime.rawValue)),
        ]
        fields["parent"] = parent.map { .string($0.rawValue) }
        fields["newParent"] = newParent.map { .string($0.rawValue) }
        fields["target"] = target.map { .string(HexadecimalText.encode($0)) }
        return .map(fields)
    }

    init?(_ json: JSON) {
        guard let old = json["old"]?.text, let new = json["new"]?.text,
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
        parent = json["parent"]?.text.map { ItemIdentifier($0) }
        newParent = json["newParent"]?.text.map { ItemIdentifier($0) }
        target = json["target"]?.text.flatMap(HexadecimalText.decode)
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
