package import PromiseCore
import PromiseKeyValue

/// What items of a storage were called before its domain was moved there: for references in other
/// domains, which nobody could change then.
package struct FormerNames: Hashable, Sendable {
    /// Where an item was when the domain was moved, and what all machines call it since, if they do.
    package struct Now: Hashable, Sendable {
        package var identifier: ItemIdentifier?
        package var path: [FileName]

        package init(identifier: ItemIdentifier?, path: [FileName]) {
            self.identifier = identifier
            self.path = path
        }
    }

    static let schema = 1
    static let about = "what items of this storage were called where its domain was before"
    /// No piece is larger than a provider keeps, whatever the names are: items and moves each have half.
    static let (pieceCount, halfByteCount) = (20_000, 4 << 20)
    /// Before the number of a piece.
    package static let prefix = "former-"

    package var items: [ItemIdentifier: Now] = [:]
    /// Where items had gone by the time when the domain was moved, at stores that know places only.
    package var moved = MovedPaths()

    /// What was noted by its place where that was all that was known of it.
    package var places: [[FileName]: Now] {
        Dictionary(items.values.map { ($0.path, $0) }, uniquingKeysWith: { one, other in one.identifier == nil ? other : one })
    }

    package init() {}

    /// False of what is damaged; what a later version wrote is its own affair.
    package static func isUsable(piece bytes: [UInt8]) -> Bool {
        guard let json = JSONReader.read(bytes), let schema = json["schema"]?.integer(Int.self)
        else { return false }
        return schema > FormerNames.schema || json["items"]?.fields != nil
    }

    /// Nothing of what is damaged, or of a later version.
    package mutating func add(piece bytes: [UInt8]) {
        guard let json = JSONReader.read(bytes), let schema = json["schema"]?.integer(Int.self),
            schema <= FormerNames.schema
        else { return }
        for (old, now) in json["items"]?.fields ?? [:] {
            guard case .list(let parts) = now, let path = parts.first?.text.flatMap(ItemKey.names)
            else { continue }
            let identifier = parts.count > 1 ? parts[1].text.map { ItemIdentifier($0) } : nil
            items[ItemIdentifier(old.text)] = Now(identifier: identifier, path: path)
        }
        for (from, to) in json["moved"]?.fields ?? [:] {
            guard let from = ItemKey.names(from.text), let to = to.text.flatMap(ItemKey.names) else { continue }
            moved.places[from] = to
        }
    }

    package var pieces: [[UInt8]] {
        let items = items.sorted { $0.key.rawValue < $1.key.rawValue }.map { old, now in
            let identifier = now.identifier.map { [JSON.string($0.rawValue)] } ?? []
            return (old.rawValue, JSON.list([.string(ItemKey.text(now.path))] + identifier))
        }
        let moves = moved.places.map { (ItemKey.text($0.key), JSON.string(ItemKey.text($0.value))) }
        let itemPieces = FormerNames.pieces(items)
        let movePieces = FormerNames.pieces(moves.sorted { $0.0 < $1.0 })
        return (0..<max(itemPieces.count, movePieces.count)).map { number in
            var piece: [Key: JSON] = [
                "about": .string(FormerNames.about), "schema": .number(String(FormerNames.schema)),
                "items": number < itemPieces.count ? itemPieces[number] : .map([:]),
            ]
            if number < movePieces.count { piece["moved"] = movePieces[number] }
            return JSON.map(piece).encoded
        }
    }

    private static func pieces(_ fields: [(String, JSON)]) -> [JSON] {
        let parts = fields.pieces(countMax: pieceCount, byteCountMax: halfByteCount) { name, value in
            JSON.string(name).encoded.count + value.encoded.count + 2
        }
        return parts.map { part in .map(Dictionary(uniqueKeysWithValues: part.map { (Key($0.0), $0.1) })) }
    }
}
