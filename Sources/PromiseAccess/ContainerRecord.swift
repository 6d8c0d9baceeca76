package import PromiseCore
package import PromiseKeyValue

/// What all machines know of an application's own folder: one private object an application.
package struct ContainerRecord: Hashable, Sendable {
    package static let schema = 1
    package static let nameByteCountMax = 200
    package static let iconByteCountMax = 65_536
    /// How every PNG file begins.
    package static let iconBeginning: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    package let application: Key
    /// What people call it.
    package var name: String
    /// Other applications may see what is in `Documents/`.
    package var isPublic: Bool
    /// A small PNG.
    package var icon: [UInt8]?
    /// Of the folder: wherever it is moved, it is the container.
    package var folder: ItemKey
    /// What a later version wrote, and goes back as it came.
    private var others: [Key: JSON] = [:]

    package init(application: Key, name: String, isPublic: Bool, folder: ItemKey) {
        self.application = application
        self.name = name
        self.isPublic = isPublic
        self.folder = folder
    }

    package var json: JSON {
        var fields = others
        fields["schema"] = .number(String(ContainerRecord.schema))
        fields["application"] = .string(application.text)
        fields["name"] = .string(name)
        fields["public"] = .bool(isPublic)
        fields["icon"] = icon.map { .string(Base64.text($0)) }
        var item: [Key: JSON] = [:]
        folder.write(to: &item)
        fields["folder"] = .map(item)
        return .map(fields)
    }

    package static func isIcon(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: iconBeginning) && bytes.count <= iconByteCountMax
    }

    package init(_ json: JSON?, of application: Key) throws(RecordTrouble) {
        guard let json, let fields = json.fields, let schema = json["schema"]?.integer(Int.self)
        else { throw .damaged }
        if schema > ContainerRecord.schema { throw .newer(schema: schema) }
        guard json["application"]?.text == application.text, let name = json["name"]?.text,
            let isPublic = json["public"]?.bool, let folder = json["folder"].flatMap({ ItemKey($0) }),
            folder.kind == .folder, name.utf8.count <= ContainerRecord.nameByteCountMax
        else { throw .damaged }
        self.init(application: application, name: name, isPublic: isPublic, folder: folder)
        icon = json["icon"]?.text.flatMap { Base64.bytes($0) }
            .flatMap { ContainerRecord.isIcon($0) ? $0 : nil }
        others = fields.filter {
            !["schema", "application", "name", "public", "icon", "folder"].contains($0.key)
        }
    }
}

/// What one machine keeps of a container, so that it is known without the provider.
package struct KnownContainer: Hashable, Sendable {
    package var record: ContainerRecord
    /// The folder here: also before the provider has it.
    package var entry: EntryID?
    /// The provider has what the record says.
    package var isSent: Bool
    /// The provider has had one: when it is missing there, somebody removed it.
    package var wasSent: Bool
    /// The folder was made anew for this one, which was deleted: what the provider has of that is over.
    package var replaced: ItemKey?

    package init(record: ContainerRecord, entry: EntryID?, isSent: Bool, wasSent: Bool) {
        self.record = record
        self.entry = entry
        self.isSent = isSent
        self.wasSent = wasSent
    }

    package var json: JSON {
        var fields: [Key: JSON] = [
            "record": record.json, "isSent": .bool(isSent), "wasSent": .bool(wasSent),
        ]
        fields["entry"] = entry.map { .number(String($0.rawValue)) }
        if let replaced {
            var item: [Key: JSON] = [:]
            replaced.write(to: &item)
            fields["replaced"] = .map(item)
        }
        return .map(fields)
    }

    package init(_ json: JSON?, of application: Key) throws(RecordTrouble) {
        guard let json, let isSent = json["isSent"]?.bool, let wasSent = json["wasSent"]?.bool
        else { throw .damaged }
        self.init(
            record: try ContainerRecord(json["record"], of: application),
            entry: json["entry"]?.integer(Int64.self).map { EntryID($0) }, isSent: isSent,
            wasSent: wasSent)
        replaced = json["replaced"].flatMap { ItemKey($0) }
    }

    /// Takes in what the provider has. Where both made one the first at the provider has the
    /// folder, and what was asked for here is done to it.
    package mutating func merge(_ theirs: ContainerRecord) {
        wasSent = true
        if let replaced, KnownContainer.isSame(theirs.folder, replaced), !isSent { return }
        replaced = nil
        if !KnownContainer.isSame(theirs.folder, record.folder) { entry = nil }
        var merged = theirs
        if !isSent {
            (merged.name, merged.isPublic) = (record.name, record.isPublic)
            merged.icon = record.icon ?? merged.icon
        }
        record = merged
        isSent = merged == theirs
    }

    /// With what is asked for here; nil: as it is.
    package func asked(name: String?, isPublic: Bool?, icon: [UInt8]?) -> KnownContainer {
        var result = self
        result.record.name = name ?? record.name
        result.record.isPublic = isPublic ?? record.isPublic
        result.record.icon = icon ?? record.icon
        if result.record != record { result.isSent = false }
        return result
    }

    /// The provider has what `ours` says. What was asked for since is to be sent still.
    package func sent(as ours: KnownContainer) -> KnownContainer {
        var result = self
        result.wasSent = true
        result.isSent = record == ours.record
        if replaced == ours.replaced { result.replaced = nil }
        return result
    }

    /// Made here while another one came to be known.
    package func merged(into now: KnownContainer) -> KnownContainer {
        var result = self
        result.merge(now.record)
        result.wasSent = now.wasSent
        if result.entry == nil { result.entry = now.entry }
        if !now.isSent { result.isSent = false }
        return result
    }

    private static func isSame(_ one: ItemKey, _ other: ItemKey) -> Bool {
        one.identifier == other.identifier && one.machine == other.machine
            && (one.identifier != nil || one.path == other.path)
    }
}
