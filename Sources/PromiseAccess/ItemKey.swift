package import PromiseCore
package import PromiseKeyValue

/// What is noted of an item to find it again: what it is called where names last, and where it was
/// when it was noted.
package struct ItemKey: Hashable, Sendable {
    package var identifier: ItemIdentifier?
    /// At a store that knows places only each machine has identifiers of its own: whose this is.
    /// Nil where all machines share them.
    package var machine: String?
    package var kind: NodeKind
    package var path: [FileName]

    package init(identifier: ItemIdentifier?, machine: String?, kind: NodeKind, path: [FileName]) {
        self.identifier = identifier
        self.machine = machine
        self.kind = kind
        self.path = path
    }

    /// The identifier, where this machine may go by it.
    package func identifier(on own: String?) -> ItemIdentifier? {
        machine == nil || machine == own ? identifier : nil
    }

    /// The identifier, where only one machine calls the item so.
    package var placeIdentifier: ItemIdentifier? { machine == nil ? nil : identifier }

    static let fields: [Key] = ["identifier", "kind", "machine", "path"]

    package init?(_ json: JSON) {
        guard let path = json["path"]?.text.flatMap(ItemKey.names), let kind = json["kind"]?.text,
            let kind = ItemKey.kinds.first(where: { $0.0 == kind })?.1
        else { return nil }
        self.init(
            identifier: json["identifier"]?.text.map { ItemIdentifier($0) },
            machine: json["machine"]?.text, kind: kind, path: path)
    }

    package func write(to fields: inout [Key: JSON]) {
        fields["identifier"] = identifier.map { .string($0.rawValue) }
        fields["machine"] = machine.map { .string($0) }
        fields["kind"] = .string(ItemKey.kinds.first { $0.1 == kind }?.0 ?? "file")
        fields["path"] = .string(ItemKey.text(path))
    }

    private static let kinds: [(String, NodeKind)] = [
        ("file", .file), ("folder", .folder), ("link", .link),
    ]

    // MARK: Paths as text

    /// `/folder/a%20file`: what is not plain ASCII is percent-encoded, as names need not be UTF-8.
    package static func text(_ path: [FileName]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for name in path {
            bytes.append(UInt8(ascii: "/"))
            for byte in name.bytes {
                if byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "%") {
                    bytes.append(byte)
                } else {
                    bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
                }
            }
        }
        return path.isEmpty ? "/" : String(decoding: bytes, as: UTF8.self)
    }

    /// Nil for what is no such text.
    package static func names(_ text: String) -> [FileName]? {
        var names: [FileName] = []
        for part in text.utf8.split(separator: UInt8(ascii: "/")) {
            var bytes: [UInt8] = []
            var rest = part[...]
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "%") else {
                    bytes.append(byte)
                    continue
                }
                guard let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                    rest.count >= 2
                else { return nil }
                rest = rest.dropFirst(2)
                bytes.append(code)
            }
            guard let name = FileName(bytes) else { return nil }
            names.append(name)
        }
        return names
    }

    /// From a folder to an item, as a link beside other items of that folder has it.
    package static func relativePath(from folder: [FileName], to path: [FileName]) -> [UInt8] {
        let shared = zip(folder, path).prefix { $0 == $1 }.count
        let up = Array(repeating: Array("..".utf8), count: folder.count - shared)
        let steps = up + path[shared...].map(\.bytes)
        return steps.isEmpty ? [UInt8(ascii: ".")] : Array(steps.joined(separator: [0x2F]))
    }
}

/// What became of an item that was noted.
package enum ItemFate: String, Hashable, Sendable, CaseIterable {
    case found
    /// Its folder has not been listed on this machine: it may be where it was.
    case unknown
    case deleted
    /// Something else is where it was.
    case replaced
    /// It is of another domain, which this user has not mounted on this machine.
    case notMounted
    /// It is of another domain, which does not answer.
    case silent

    /// Nothing of it is where it was: somebody may say where it has gone.
    package var mayHaveMoved: Bool { self == .deleted || self == .replaced }

    /// For people, of what does not lead anywhere; nil of what does.
    package var reason: String? {
        switch self {
        case .found: nil
        case .unknown: "its folder is not known on this machine yet: look into it, or ask again when the provider is there"
        case .deleted: "the item was deleted"
        case .replaced: "the item was deleted, and another one has its name now"
        case .notMounted: "it is of another domain, which is not mounted here: mount that"
        case .silent: "it is of another domain, whose daemon does not answer: see 'promisefs status'"
        }
    }
}
