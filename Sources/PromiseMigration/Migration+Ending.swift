import PromiseAccess
import PromiseCore
import PromiseKeyValue
import PromiseProvider
import PromiseSystem

// What is done when everything is there: what folders say of themselves, what PromiseFS keeps at a
// storage, and a look at all of it.

extension Migration {
    /// What the new storage has somewhere.
    private struct Found {
        var item: Item
        var place: NewPlace
        var reference: ItemReference
    }

    /// What is put into a folder changes its time, and its mode may forbid it: so folders get theirs
    /// last, the deepest first.
    mutating func dressFolders() async throws(ProviderError) {
        guard new.capabilities.contains(.metadata) else { return }
        let folders = paths().compactMap {
            path, identifier -> (path: [FileName], item: MigratedItem)? in
            guard let item = items[identifier], item.kind == .folder else { return nil }
            return (path, item)
        }.sorted { $0.path.count > $1.path.count }
        for (path, folder) in folders {
            let reference = ItemReference(identifier: folder.new, path: path)
            let changes = ItemChanges(metadata: folder.metadata)
            _ = try await worker.patiently { [new] () async throws(ProviderError) in
                try await new.modify(reference, changes: changes, contents: nil, baseVersion: nil)
            }
        }
    }

    /// Values of applications, which folder is whose container, what references in other domains call
    /// the storage, attributes of items, where they were moved to, and pictures of documents.
    mutating func bringPrivateObjects() async throws(ProviderError) {
        guard let objects = old.privateObjects else { return }
        let paths = paths()
        for kind in [PrivateName.Kind.values, .containers, .storage, .attributes, .moves] {
            let names = try await worker.patiently { () async throws(ProviderError) in
                try await objects.list(kind)
            }
            for name in names {
                if kind == .storage,
                    name.name.hasPrefix(FormerNames.prefix) || MovedRecord.isOne(name)
                {
                    continue
                }
                let read = try await worker.patiently { () async throws(ProviderError) in
                    try await objects.read(name)
                }
                guard var object = read else { continue }
                guard let there = new.privateObjects else {
                    // Only this machine will know it by that name.
                    if kind == .storage || kind == .moves { continue }
                    throw ProviderError(
                        .permanent,
                        "'\(new.name)' keeps no values and containers of applications, and '\(old.name)' has some"
                    )
                }
                if kind == .containers { object.bytes = renamed(object.bytes, paths) }
                let bytes = object.bytes
                try await worker.patiently { () async throws(ProviderError) in
                    let found = try await there.read(name)
                    if found?.bytes == bytes { return }
                    _ = try await there.write(bytes, to: name, base: found?.version)
                }
            }
        }
        try await bringPictures(paths)
        guard let there = new.privateObjects else { return }
        try await bringFormerNames(from: objects, to: there, paths)
    }

    /// The record of a container with what its folder is called at the new storage.
    private func renamed(_ bytes: [UInt8], _ paths: [[FileName]: ItemIdentifier]) -> [UInt8] {
        guard let json = JSONReader.read(bytes), var fields = json.fields,
            let folder = json["folder"], let known = ItemKey(folder)
        else { return bytes }
        var item = (folder.fields ?? [:]).filter { !["identifier", "machine"].contains($0.key) }
        key(known, paths).write(to: &item)
        fields["folder"] = .map(item)
        return JSON.map(fields).encoded
    }

    // MARK: What the new storage has

    /// All of it; a folder comes before what is in it.
    private func look() async throws(ProviderError) -> [Found] {
        let worker = worker
        var result: [Found] = []
        var folders = [newRoot]
        while let folder = folders.popLast() {
            let items = try await worker.patiently { [new] () async throws(ProviderError) in
                try await worker.list(folder, new)
            }
            for item in items {
                let reference = ItemReference(
                    identifier: item.identifier, path: folder.path + [item.name])
                let place = NewPlace(parent: folder.identifier, name: item.name)
                result.append(Found(item: item, place: place, reference: reference))
                if item.kind == .folder { folders.append(reference) }
            }
        }
        return result
    }

    /// What an earlier run has brought and the new storage does not have is brought again; what it
    /// has made and not noted is known, too.
    mutating func goOn() async throws(ProviderError) {
        let found = try await look()
        let there = Set(found.map(\.place))
        places = places.filter { there.contains($0.key) }
        for one in found where places[one.place] == nil && log.intended.contains(one.place) {
            let item = MigratedItem(unnoted: one.item, in: one.place.parent)
            (places[one.place], made[item.new]) = (item, item)
        }
    }

    /// What stands in the way of something of another kind, which the next pass brings then.
    mutating func removeObstacles() async throws(ProviderError) {
        guard !obstacles.isEmpty else { return }
        let tops = Set(obstacles.map(\.path))
        let strays = try await look().filter { found in
            let path = found.reference.path
            return path.indices.contains { tops.contains(Array(path[...$0])) }
        }
        try await remove(strays)
        progress.brought += 1
    }

    /// Whether the new storage has what was brought and nothing else. What an earlier run has made
    /// and the old storage has no more is removed; of what nobody knows where it is from there is a
    /// sentence.
    mutating func compareAll() async throws(ProviderError) {
        var expected = places
        var strays: [Found] = []
        for found in try await look() {
            guard let item = expected.removeValue(forKey: found.place) else {
                strays.append(found)
                continue
            }
            if let problem = difference(found.item, item) {
                troubles.append(Trouble(path: found.reference.path, problem: problem))
            }
        }
        for item in expected.values {
            let problem = ProviderError(.notFound, "the new storage does not have it any more")
            troubles.append(Trouble(path: [item.name], problem: problem))
        }
        try await remove(strays)
    }

    private func difference(_ found: Item, _ item: MigratedItem) -> ProviderError? {
        guard found.kind == item.kind || found.isGuess else {
            return ProviderError(.conflict, "the new storage has something of another kind there")
        }
        if item.kind == .file, found.size != item.size || found.version != item.newVersion {
            return ProviderError(.conflict, "somebody changed it at the new storage")
        }
        return nil
    }

    /// The deepest first. What stays keeps the folders above it.
    private mutating func remove(_ strays: [Found]) async throws(ProviderError) {
        var kept: Set<[FileName]> = []
        for stray in strays.reversed() {
            let path = stray.reference.path
            if !kept.contains(path) {
                guard let problem = try await remove(stray) else { continue }
                troubles.append(Trouble(path: path, problem: problem))
            }
            kept.insert(Array(path.dropLast()))
        }
    }

    /// Only what was made by a migration, and is still what that has made: others may have gone on
    /// with it there. Returns why it stays.
    private mutating func remove(_ stray: Found) async throws(ProviderError) -> ProviderError? {
        guard let item = made[stray.item.identifier] else {
            return ProviderError(.conflict, "the new storage has it, and nobody has brought it there")
        }
        if let problem = difference(stray.item, item) { return problem }
        do throws(ProviderError) {
            try await worker.patiently { [new] () async throws(ProviderError) in
                try await new.delete(stray.reference, baseVersion: stray.item.version)
            }
        } catch {
            if Migration.endsAll(error) { throw error }
            if error.code != .notFound { return error }
        }
        places[stray.place] = nil
        return nil
    }
}
