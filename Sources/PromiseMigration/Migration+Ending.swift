import PromiseAccess
import PromiseCore
import PromiseKeyValue
import PromiseProvider
import PromiseSystem

// What is done when everything is there: what folders say of themselves, what PromiseFS keeps at a
// storage, and a look at all of it.

extension Migration {
    private struct Place: Hashable {
        var parent: ItemIdentifier
        var name: FileName
    }

    /// What is put into a folder changes its time, and its mode may forbid it: so folders get theirs
    /// last, the deepest first.
    mutating func dressFolders() async throws(ProviderError) {
        guard new.capabilities.contains(.metadata) else { return }
        let places = paths()
        let folders = places.compactMap {
            path, identifier -> (path: [FileName], item: MigratedItem)? in
            guard let item = items[identifier], item.kind == .folder else { return nil }
            return (path, item)
        }.sorted { $0.path.count > $1.path.count }
        for (path, folder) in folders {
            let reference = ItemReference(identifier: folder.new, path: path)
            _ = try await new.modify(
                reference, changes: ItemChanges(metadata: folder.metadata), contents: nil,
                baseVersion: nil)
        }
    }

    /// Values of applications, and which folder is whose container.
    mutating func bringPrivateObjects() async throws(ProviderError) {
        guard let objects = old.privateObjects else { return }
        let paths = paths()
        for kind in [PrivateName.Kind.values, .containers] {
            for name in try await objects.list(kind) {
                guard var object = try await objects.read(name) else { continue }
                guard let there = new.privateObjects else {
                    throw ProviderError(
                        .permanent,
                        "'\(new.name)' keeps no values and containers of applications, and '\(old.name)' has some"
                    )
                }
                if kind == .containers { object.bytes = renamed(object.bytes, paths) }
                let found = try await there.read(name)
                if found?.bytes == object.bytes { continue }
                _ = try await there.write(object.bytes, to: name, base: found?.version)
            }
        }
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

    // MARK: The look at all of it

    /// Whether the new storage has what was brought and nothing else. What an earlier run has made
    /// and the old storage has no more is removed; of what nobody knows where it is from there is a
    /// sentence.
    mutating func compareAll() async throws(ProviderError) {
        var expected: [Place: MigratedItem] = [:]
        for item in items.values {
            expected[Place(parent: item.newParent ?? newRoot.identifier, name: item.name)] = item
        }
        var folders = [newRoot]
        let worker = MigrationWorker(
            old: old, new: new, surroundings: surroundings, readsBack: readsBack)
        while let folder = folders.popLast() {
            for found in try await worker.list(folder, new) {
                let reference = ItemReference(
                    identifier: found.identifier, path: folder.path + [found.name])
                let place = Place(parent: folder.identifier, name: found.name)
                guard let item = expected.removeValue(forKey: place) else {
                    try await remove(found, reference, worker)
                    continue
                }
                if let problem = difference(found, item) {
                    troubles.append(Trouble(path: reference.path, problem: problem))
                }
                if found.kind == .folder {
                    folders.append(ItemReference(identifier: item.new, path: reference.path))
                }
            }
        }
        for item in expected.values {
            let problem = ProviderError(.notFound, "the new storage does not have it any more")
            troubles.append(Trouble(path: [item.name], problem: problem))
        }
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

    private mutating func remove(
        _ item: Item, _ reference: ItemReference, _ worker: MigrationWorker
    ) async throws(ProviderError) {
        guard made.contains(item.identifier) else {
            let problem = ProviderError(
                .conflict, "the new storage has it, and nobody has brought it there")
            return troubles.append(Trouble(path: reference.path, problem: problem))
        }
        if item.kind == .folder {
            for child in try await worker.list(reference, new) {
                let path = reference.path + [child.name]
                try await remove(
                    child, ItemReference(identifier: child.identifier, path: path), worker)
            }
        }
        try await new.delete(reference, baseVersion: item.version)
    }
}
