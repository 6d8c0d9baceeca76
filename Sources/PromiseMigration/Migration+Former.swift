import PromiseAccess
import PromiseCore
import PromiseProvider

// What other machines find items by that they know under their old names.

extension Migration {
    /// Only where references in other domains may name items of this one.
    func bringFormerNames(
        from objects: any PrivateObjects, to there: any PrivateObjects,
        _ paths: [[FileName]: ItemIdentifier]
    ) async throws(ProviderError) {
        let known = try await objects.list(.storage)
        let isNamed = known.contains {
            !$0.name.hasPrefix(FormerNames.prefix) && !MovedRecord.isOne($0)
        }
        guard isNamed else { return }
        var before = FormerNames()
        for name in known where name.name.hasPrefix(FormerNames.prefix) {
            if let object = try await objects.read(name) { before.add(piece: object.bytes) }
        }
        var places: [ItemIdentifier: [FileName]] = [:]
        for (path, identifier) in paths { places[identifier] = path }
        // Machines that share no identifiers know each by its place.
        let sharesNumbersAlone = new.capabilities.contains(.placeIdentifiers)
        var names = FormerNames()
        for (old, path) in places {
            guard let item = items[old] else { continue }
            let identifier = sharesNumbersAlone && !item.new.isNumber ? nil : item.new
            names.items[old] = FormerNames.Now(identifier: identifier, path: path)
        }
        for (older, then) in before.items where names.items[older] == nil {
            guard let old = then.identifier ?? item(onceAt: then.path, paths), let now = names.items[old]
            else { continue }
            names.items[older] = now
            if now.path != then.path { names.moved.places[then.path] = now.path }
        }
        for known in [moved, before.moved] { names.moved.add(known) }
        // What is there by now is something else.
        names.moved.places = names.moved.places.filter { paths[$0.key] == nil }
        for (number, piece) in names.pieces.enumerated() {
            guard let name = PrivateName(.storage, "\(FormerNames.prefix)\(number).json") else {
                continue
            }
            let found = try await there.read(name)
            if found?.bytes == piece { continue }
            _ = try await there.write(piece, to: name, base: found?.version)
        }
    }
}
