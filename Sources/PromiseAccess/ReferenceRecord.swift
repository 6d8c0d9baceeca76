package import PromiseCore
import PromiseKeyValue

/// What a reference is at the provider: a link whose target says, to people and to every machine,
/// for which document it stands. Where a store keeps links as small files this is what is in them.
package struct ReferenceRecord: Hashable, Sendable {
    /// A storage that domains of any name, on any machine, may be of.
    package struct Storage: Hashable, Sendable {
        /// As the storage itself has it among its private objects.
        package var identifier: String
        /// What its domain was called where the reference was made: for people.
        package var domain: String

        package init(identifier: String, domain: String) {
            self.identifier = identifier
            self.domain = domain
        }
    }

    /// Of those that stand for documents of their own storage.
    package static let schema = 1
    /// Of those that stand for documents of another one, which earlier versions take for ordinary
    /// links, and not for documents here.
    package static let schemaElsewhere = 2
    package static let mark = Array("promisefs-reference:".utf8)
    /// As symlink(2) takes.
    package static let byteCountMax = 4_000
    static let about =
        "stands for the item of this storage with the identifier, which was at the path"
    static let aboutElsewhere =
        "stands for the item with the identifier, which was at the path, of the storage whose "
        + ".promisefs/storage/identity.json has the identifier"

    package var key: ItemKey
    /// Whose document it is, where it is not one of the storage that the reference is in.
    package var storage: Storage?

    package init(_ key: ItemKey, of storage: Storage? = nil) {
        self.key = key
        self.storage = storage
    }

    /// Nil for what is an ordinary link, and for what a later version has made.
    package init?(target: [UInt8]) {
        guard target.starts(with: ReferenceRecord.mark),
            let json = JSONReader.read(Array(target.dropFirst(ReferenceRecord.mark.count))),
            let schema = json["schema"]?.integer(Int.self), schema <= ReferenceRecord.schemaElsewhere,
            let key = ItemKey(json), !key.path.isEmpty
        else { return nil }
        self.key = key
        guard schema == ReferenceRecord.schemaElsewhere else { return }
        guard let identifier = json["storage"]?["identifier"]?.text, !identifier.isEmpty else {
            return nil
        }
        storage = Storage(
            identifier: identifier, domain: json["storage"]?["domain"]?.text ?? "")
    }

    package var target: [UInt8] {
        var fields: [Key: JSON] = [
            "about": .string(storage == nil ? ReferenceRecord.about : ReferenceRecord.aboutElsewhere),
            "schema": .number(
                String(storage == nil ? ReferenceRecord.schema : ReferenceRecord.schemaElsewhere)),
        ]
        key.write(to: &fields)
        if let storage {
            fields["storage"] = .map([
                "identifier": .string(storage.identifier), "domain": .string(storage.domain),
            ])
        }
        return ReferenceRecord.mark + JSON.map(fields).encoded
    }

    /// What its link shows in a folder of the mount: never what has the name of something else.
    package func link(
        in folder: [FileName], _ fate: ItemFate, _ path: [FileName]
    ) -> [UInt8] {
        switch fate {
        case .found, .unknown: ItemKey.relativePath(from: folder, to: path)
        case .deleted, .replaced, .notMounted, .silent: nowhere(in: folder, fate, path)
        }
    }

    /// The same of a document in another domain: its whole path, as the two mounts may be anywhere,
    /// and links are read in the place where the reference was opened by.
    package func link(in folder: [FileName], _ finding: ElsewhereFinding) -> [UInt8] {
        switch finding.fate {
        case .found, .unknown, .silent:
            if let place = finding.place { return place }
        case .deleted, .replaced, .notMounted: break
        }
        return nowhere(in: folder, finding.fate, finding.path)
    }

    private func nowhere(in folder: [FileName], _ fate: ItemFate, _ path: [FileName]) -> [UInt8] {
        ItemKey.relativePath(
            from: folder,
            to: [".promisefs", fate.rawValue].map { FileName(trusted: Array($0.utf8)) } + path)
    }
}

/// What is known of a document in another domain.
package struct ElsewhereFinding: Hashable, Sendable {
    package var fate: ItemFate
    /// What its domain is called on this machine; nil where it is not mounted.
    package var domain: String?
    /// Where it is, or was, in its domain.
    package var path: [FileName]
    /// The same from the root of this machine; of a silent domain where it was last.
    package var place: [UInt8]?
    package var identifier: ItemIdentifier?
    /// What a reference that is made now is to say of it.
    package var record: ReferenceRecord?
    /// What its domain calls it on this machine, also when others replace it as a whole.
    package var bound: String?

    package init(_ fate: ItemFate, path: [FileName]) {
        self.fate = fate
        self.path = path
    }
}
