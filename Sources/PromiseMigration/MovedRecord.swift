import PromiseAccess
package import PromiseCore
import PromiseKeyValue
package import PromiseProvider

/// Where the domain of a storage was moved to, as the old storage keeps it for the machines that go
/// on with that one: `moved.json`, and in pieces beside it what was brought, so that they need not
/// bring anything again.
package struct MovedRecord: Hashable, Sendable {
    /// What the old storage had, and what it is at the new one.
    package typealias Items = [MigratedItem]

    private static let schema = 1
    private static let about = "where the domain of this storage was moved to"
    package static let place = PrivateName(.storage, "moved.json")!
    private static let piecePrefix = "moved-"
    /// No piece is larger than a provider keeps, whatever the names are.
    private static let (pieceCount, pieceByteCount) = (10_000, 8 << 20)

    /// As for `mount`, without a user.
    package var provider: String
    package var root: ItemIdentifier
    package var oldRoot: ItemIdentifier
    var pieces: Int

    /// Of a storage.
    package static func isOne(_ name: PrivateName) -> Bool {
        name == place || name.name.hasPrefix(piecePrefix)
    }

    /// False of what is damaged; what a later version wrote is its own affair.
    package static func isUsable(_ bytes: [UInt8], _ name: PrivateName) -> Bool {
        guard let json = JSONReader.read(bytes), let schema = json["schema"]?.integer(Int.self)
        else { return false }
        if schema > MovedRecord.schema { return true }
        return name == place ? MovedRecord(bytes) != nil : items(in: bytes) != nil
    }

    /// Whether other machines are told of such a storage. What a program serves is each machine's
    /// own, and a stranger who may write here shall not say what is to be run.
    package static func canName(_ provider: String) -> Bool {
        ["folder:/", "webdav+http://", "webdav+https://", "s3://"].contains {
            provider.hasPrefix($0)
        } && provider.utf8.count <= 4096
    }

    /// Whether it is the storage of this name that the domain was moved to.
    package func leads(to name: String) -> Bool { MovedRecord.withoutUser(name) == provider }

    /// Every machine has a login of its own.
    package static func withoutUser(_ name: String) -> String {
        let parts = name.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2, parts[0].last == ":", parts[1].isEmpty,
            let at = parts[2].lastIndex(of: "@")
        else { return name }
        let authority = parts[2][parts[2].index(after: at)...]
        return (parts[..<2] + [authority] + parts[3...]).joined(separator: "/")
    }

    // MARK: Reading

    /// Nil when there is none, or none that can be used.
    package static func read(
        _ objects: any PrivateObjects
    ) async throws(ProviderError) -> MovedRecord? {
        try await objects.read(place).flatMap { MovedRecord($0.bytes) }
    }

    package func items(
        _ objects: any PrivateObjects
    ) async throws(ProviderError) -> Items {
        var result: Items = []
        for number in 0..<pieces {
            guard let name = MovedRecord.piece(number), let object = try await objects.read(name),
                let items = MovedRecord.items(in: object.bytes)
            else {
                throw ProviderError(
                    .corrupted,
                    "what was moved cannot be told: '.promisefs/storage/\(MovedRecord.piecePrefix)\(number).json' is "
                        + "missing or damaged"
                )
            }
            result += items
        }
        return result
    }

    private init?(_ bytes: [UInt8]) {
        guard let json = JSONReader.read(bytes),
            json["schema"]?.integer(Int.self) == MovedRecord.schema,
            let provider = json["provider"]?.text, MovedRecord.canName(provider),
            let root = json["root"]?.text, let oldRoot = json["oldRoot"]?.text,
            let pieces = json["pieces"]?.integer(Int.self), (0...100_000).contains(pieces)
        else { return nil }
        self.provider = provider
        self.root = ItemIdentifier(root)
        self.oldRoot = ItemIdentifier(oldRoot)
        self.pieces = pieces
    }

    private static func items(in bytes: [UInt8]) -> Items? {
        guard case .list(let list)? = JSONReader.read(bytes)?["items"] else { return nil }
        var result: Items = []
        for json in list {
            guard let item = MigratedItem(json) else { return nil }
            result.append(item)
        }
        return result
    }

    private static func piece(_ number: Int) -> PrivateName? {
        PrivateName(.storage, "\(piecePrefix)\(number).json")
    }

    // MARK: Writing

    private init(_ migration: Migration, pieces: Int) {
        provider = MovedRecord.withoutUser(migration.new.name)
        (root, oldRoot) = (migration.newRoot.identifier, migration.root.identifier)
        self.pieces = pieces
    }

    /// All is at the new storage: the old one tells it. The record itself comes last, so that it
    /// never leads to pieces that are not there.
    package static func write(
        _ migration: Migration, to objects: any PrivateObjects
    ) async throws(ProviderError) {
        let items = migration.places.values.sorted { $0.old.rawValue < $1.old.rawValue }
        var count = 0
        let pieces = items.map(\.json).pieces(countMax: pieceCount, byteCountMax: pieceByteCount) {
            $0.encoded.count + 1
        }
        for list in pieces {
            guard let name = piece(count) else { break }
            let json = JSON.map([
                "about": .string(about), "items": .list(Array(list)), "schema": .number(String(schema)),
            ])
            try await write(json.encoded, to: name, objects)
            count += 1
        }
        let record = MovedRecord(migration, pieces: count)
        let json = JSON.map([
            "about": .string(about), "provider": .string(record.provider),
            "root": .string(record.root.rawValue), "oldRoot": .string(record.oldRoot.rawValue),
            "pieces": .number(String(count)), "schema": .number(String(schema)),
        ])
        try await write(json.encoded, to: place, objects)
    }

    /// A domain came back to where one had been, or stays there. The record itself goes first, so
    /// that it never leads to pieces that are not there.
    package static func remove(
        from objects: any PrivateObjects
    ) async throws(ProviderError) {
        let pieces = try await objects.list(.storage).filter { isOne($0) && $0 != place }
        for name in [place] + pieces {
            guard let found = try await objects.read(name) else { continue }
            try await objects.delete(name, base: found.version)
        }
    }

    private static func write(
        _ bytes: [UInt8], to name: PrivateName, _ objects: any PrivateObjects
    ) async throws(ProviderError) {
        let found = try await objects.read(name)
        if found?.bytes == bytes { return }
        _ = try await objects.write(bytes, to: name, base: found?.version)
    }
}
