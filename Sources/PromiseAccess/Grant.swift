package import PromiseCore
package import PromiseKeyValue

/// What an application may do to an item.
package enum Rights: UInt8, Hashable, Comparable, Sendable, CaseIterable {
    case none = 0
    case read = 1
    case readWrite = 2

    package static func < (left: Rights, right: Rights) -> Bool { left.rawValue < right.rawValue }

    /// As records, documents and the command line have it.
    package var name: String {
        switch self {
        case .none: "none"
        case .read: "read"
        case .readWrite: "read-write"
        }
    }

    package init?(name: String) {
        guard let rights = Rights.allCases.first(where: { $0.name == name }) else { return nil }
        self = rights
    }
}

/// Never used again within one state folder. It is no secret: who may use a grant is known by the
/// channel.
package struct GrantID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: GrantID, right: GrantID) -> Bool { left.rawValue < right.rawValue }
    package var description: String { "\(rawValue)" }
}

/// One run of an application, from its start to its end. Drawn by chance, so that none comes twice.
package struct LaunchID: Hashable, Sendable, CustomStringConvertible {
    package let text: String
    package init(_ text: String) { self.text = text }
    package var description: String { text }
}

/// An application's right to one item, and to what is below it where that is a folder.
package struct Grant: Hashable, Sendable {
    package static let schema = 1

    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Opens the item.
        case item
        /// Opens nothing by itself: resolving a bookmark that names it starts a grant of the launch.
        case bookmark
        /// An application's own folder, for one launch.
        case container
    }

    package enum End: Hashable, Sendable {
        /// Somebody revokes it.
        case revoked
        case date(Timestamp)
        /// The launch ends. Such a grant is never stored.
        case launch(LaunchID)

        package var launch: LaunchID? { if case .launch(let launch) = self { launch } else { nil } }
        package var date: Timestamp? { if case .date(let date) = self { date } else { nil } }
    }

    package var id: GrantID
    package var kind: Kind
    package var application: Key
    /// How the item is found again.
    package var key: ItemKey
    /// Its name on this machine, which stays when it is renamed, moved, or saved as a whole.
    package var entry: EntryID
    package var rights: Rights
    package var end: End
    /// What it was made from: it ends with that, and gives no more.
    package var parent: GrantID?
    /// Of a bookmark that was made from a grant of a launch: it is to outlive the launch, but ends
    /// when that grant is revoked meanwhile.
    package var source: GrantID?
    /// Made from what ends with a launch, and so never stored.
    package var isTransient = false
    /// Who passed it on; nil: the owner gave it.
    package var giver: Key?
    /// What the application sees it under, for as long as it has it.
    package var name: FileName
    package var made: Timestamp

    package init(
        id: GrantID, kind: Kind = .item, application: Key, key: ItemKey, entry: EntryID,
        rights: Rights, end: End, parent: GrantID? = nil, giver: Key? = nil, name: FileName,
        made: Timestamp
    ) {
        self.id = id
        self.kind = kind
        self.application = application
        self.key = key
        self.entry = entry
        self.rights = rights
        self.end = end
        self.parent = parent
        self.giver = giver
        self.name = name
        self.made = made
    }

    /// One that outlives the daemon.
    package var isStored: Bool { end.launch == nil && !isTransient }

    // MARK: Stored

    /// Nil for one that is not stored.
    package var json: JSON? {
        guard isStored else { return nil }
        func number(_ value: Int64) -> JSON { .number(String(value)) }
        var fields: [Key: JSON] = [
            "schema": number(Int64(Grant.schema)), "id": number(id.rawValue),
            "kind": .string(kind.rawValue), "application": .string(application.text),
            "entry": number(entry.rawValue), "rights": .string(rights.name),
            "name": .string(ItemKey.text([name])), "made": number(made.rawValue),
        ]
        fields["until"] = end.date.map { number($0.rawValue) }
        fields["parent"] = parent.map { number($0.rawValue) }
        fields["giver"] = giver.map { .string($0.text) }
        var item: [Key: JSON] = [:]
        key.write(to: &item)
        fields["item"] = .map(item)
        return .map(fields)
    }

    package init?(_ json: JSON) {
        guard json["schema"]?.integer(Int.self) == Grant.schema,
            let id = json["id"]?.integer(Int64.self),
            let kind = json["kind"]?.text.flatMap({ Kind(rawValue: $0) }), kind != .container,
            let application = json["application"]?.text, let item = json["item"],
            let key = ItemKey(item), let entry = json["entry"]?.integer(Int64.self),
            let rights = json["rights"]?.text.flatMap({ Rights(name: $0) }),
            let name = json["name"]?.text.flatMap({ ItemKey.names($0) })?.first,
            let made = json["made"]?.integer(Int64.self)
        else { return nil }
        var end = End.revoked
        if let until = json["until"] {
            // A limit that cannot be read is none that may be left out.
            guard let date = until.integer(Int64.self) else { return nil }
            end = .date(Timestamp(nanoseconds: date))
        }
        var parent: GrantID?
        if let number = json["parent"] {
            guard let number = number.integer(Int64.self), number < id else { return nil }
            parent = GrantID(number)
        }
        self.init(
            id: GrantID(id), kind: kind, application: Key(application), key: key,
            entry: EntryID(entry), rights: rights, end: end, parent: parent,
            giver: json["giver"]?.text.map { Key($0) }, name: name,
            made: Timestamp(nanoseconds: made))
    }
}
