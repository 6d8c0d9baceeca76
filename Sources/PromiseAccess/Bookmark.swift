import Crypto
package import PromiseCore
package import PromiseKeyValue

/// An item as an application notes it: to be found again, with what it may do and what was known.
package struct Bookmark: Hashable, Sendable {
    package static let schema = 1

    package var key: ItemKey
    /// Its name on this machine.
    package var entry: EntryID
    package var isReadOnly: Bool
    /// Attributes that were chosen: known also when the item cannot be found.
    package var attributes: [Key: JSON]
    /// What its application may do by it, for as long as that grant is there; nil of the owner's.
    package var grant: GrantID?
    /// What the provider calls the item for good, where it has such names.
    package var persistent: String?

    package init(
        key: ItemKey, entry: EntryID, isReadOnly: Bool, attributes: [Key: JSON],
        grant: GrantID? = nil, persistent: String? = nil
    ) {
        self.grant = grant
        self.persistent = persistent
        self.key = key
        self.entry = entry
        self.isReadOnly = isReadOnly
        self.attributes = attributes
    }

    fileprivate var json: JSON {
        var fields: [Key: JSON] = [
            "schema": .number(String(Bookmark.schema)),
            "entry": .number(String(entry.rawValue)), "readOnly": .bool(isReadOnly),
            "attributes": .map(attributes),
        ]
        fields["grant"] = grant.map { .number(String($0.rawValue)) }
        fields["persistent"] = persistent.map { .string($0) }
        key.write(to: &fields)
        return .map(fields)
    }

    fileprivate init?(_ json: JSON) {
        guard json["schema"]?.integer(Int.self) == Bookmark.schema, let key = ItemKey(json),
            let entry = json["entry"]?.integer(Int64.self), let isReadOnly = json["readOnly"]?.bool,
            let attributes = json["attributes"]?.fields
        else { return nil }
        self.init(
            key: key, entry: EntryID(entry), isReadOnly: isReadOnly, attributes: attributes,
            grant: json["grant"]?.integer(Int64.self).map { GrantID($0) },
            persistent: json["persistent"]?.text)
    }

    /// Why what is in it is not what is now: nil when it is.
    package func staleness(_ now: ItemKey) -> String? {
        if now.path != key.path { return "the item was renamed or moved" }
        // What had none yet has one now, and is the same.
        if let identifier = key.identifier, now.identifier != identifier {
            return "the item was replaced as a whole"
        }
        return nil
    }
}

/// Seals bookmarks, so that who has one learns nothing from it, cannot make one, and cannot give it
/// to another application.
package struct BookmarkSeal: Sendable {
    package static let keyByteCount = 32
    package static let textByteCountMax = 64 << 10
    private static let version: UInt8 = 1

    private let key: SymmetricKey

    /// Nil unless it is a key of the right size.
    package init?(key bytes: [UInt8]) {
        guard bytes.count == BookmarkSeal.keyByteCount else { return nil }
        key = SymmetricKey(data: bytes)
    }

    package static func freshKey() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<keyByteCount).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
    }

    /// One line of base64url. `application`: who may use it; nil: the owner.
    package func seal(_ bookmark: Bookmark, for application: String?) -> String? {
        let box = try? ChaChaPoly.seal(
            bookmark.json.encoded, using: key, authenticating: context(application))
        guard let box else { return nil }
        return Base64.urlText([BookmarkSeal.version] + Array(box.combined))
    }

    /// Nil for what was not sealed here for this application.
    package func open(_ text: String, for application: String?) -> Bookmark? {
        guard text.utf8.count <= BookmarkSeal.textByteCountMax,
            let bytes = Base64.bytes(url: text), bytes.first == BookmarkSeal.version,
            let box = try? ChaChaPoly.SealedBox(combined: bytes.dropFirst()),
            let opened = try? ChaChaPoly.open(box, using: key, authenticating: context(application))
        else { return nil }
        return JSONReader.read(Array(opened)).flatMap { Bookmark($0) }
    }

    private func context(_ application: String?) -> [UInt8] {
        Array("promisefs bookmark ".utf8) + [BookmarkSeal.version]
            + (application.map { [1] + Array($0.utf8) } ?? [0])
    }
}
