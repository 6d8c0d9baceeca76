import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue

// The folders of containers.

extension Containers {
    /// A folder of that name in the root, or of another one where that is somebody else's.
    func make(
        _ key: Key, _ name: String?, _ isPublic: Bool
    ) async throws(Failure) -> KnownContainer {
        let shown = name ?? key.text
        // What is called by the whole identifier is its own: another machine has made it, perhaps.
        for name in shown == key.text ? [shown] : [shown, "\(shown) (\(key))"] {
            guard let name = FileName(name) else { continue }
            let isLeft = try wasLeft(name, by: key)
            let node: NodeID
            var isNew = true
            do throws(Failure) {
                node = try await tree.makeFolder(name, in: .root)
            } catch where error.code == .exists {
                guard isLeft || String(decoding: name.bytes, as: UTF8.self).contains(key.text) else { continue }
                node = try await tree.node(at: [name])
                isNew = false
                guard try tree.key(of: NamedItem(node: node)).key.kind == .folder else { continue }
            }
            let known = try tree.key(of: NamedItem(node: node))
            if known.entry.isExcluded {
                if isNew { await discard(node) }
                throw Failure(
                    .invalid, "a folder that is called '\(shown)' stays on this machine: give another --name")
            }
            do throws(Failure) { try await makeDocuments(in: node) } catch {
                if isNew { await discard(node) }
                throw error
            }
            let record = ContainerRecord(
                application: key, name: shown, isPublic: isPublic, folder: known.key)
            return KnownContainer(
                record: record, entry: known.entry.id, isSent: false, wasSent: false)
        }
        throw Failure(
            .exists, "something else is called '\(shown)' in this domain: give another --name")
    }

    private static func setting(of key: Key) -> String { "container.making.\(key)" }

    /// Whether the folder of that name is what an attempt has left that was cut off before the record was on the disk: nothing
    /// is in it but what such an attempt makes. Where nothing has the name this one is noted.
    private func wasLeft(_ name: FileName, by key: Key) throws(Failure) -> Bool {
        let note = ItemKey.text([name])
        return try tree.index.write { transaction throws(Failure) in
            let setting = Containers.setting(of: key)
            guard let entry = try transaction.entry(in: .root, named: name) else {
                try transaction.setSetting(setting, note)
                return false
            }
            guard try transaction.setting(setting) == note else { return false }
            return try isBare(entry.node, transaction)
        }
    }

    private func isBare(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        let children = try transaction.children(of: folder)
        guard let child = children.first else { return true }
        guard children.count == 1, child.name == FileName(Containers.documentsName) else { return false }
        return try !transaction.hasChildren(child.node)
    }

    /// Its folder was made just now, and goes again when the record cannot be written. `before`: what was
    /// known when that was begun. What has come from others since is taken in.
    func keepMade(
        _ container: KnownContainer, of key: Key, before: KnownContainer?
    ) async throws(Failure) {
        let made = container.entry
        do throws(Failure) {
            try await change(key) { now in
                guard let now, now != before else { return container }
                return container.merged(into: now)
            }
        } catch {
            let entry = try? made.flatMap { made throws(Failure) in
                try tree.index.read { transaction throws(Failure) in try transaction.entry(made) }
            }
            if let node = entry?.node { await discard(node) }
            throw error
        }
        guard made != nil else { return }
        // A note that stays is of a name that is taken by this container.
        _ = try? tree.index.write { transaction throws(Failure) in
            try transaction.setSetting(Containers.setting(of: key), nil)
        }
    }

    /// A folder that was made for a container which there is not going to be; as far as nobody has put anything into it.
    func discard(_ folder: NodeID) async {
        let children = try? tree.index.read { transaction throws(Failure) in try transaction.children(of: folder) }
        for child in children ?? [] where child.name == FileName(Containers.documentsName) {
            try? await tree.removeFolder(child.name, in: folder)
        }
        let entry = try? tree.index.read { transaction throws(Failure) in try transaction.entries(of: folder).first }
        if let entry = entry ?? nil { try? await tree.removeFolder(entry.name, in: entry.parent) }
    }

    /// The person may have removed it.
    func makeDocuments(_ container: KnownContainer) async throws(Failure) {
        guard let entry = try await find(container).entry else { return }
        try await tree.list(entry.node)
        try await makeDocuments(in: entry.node)
    }

    private func makeDocuments(in folder: NodeID) async throws(Failure) {
        do throws(Failure) {
            _ = try await tree.makeFolder(FileName(trusted: Array(Containers.documentsName.utf8)), in: folder)
        } catch where error.code == .exists {}
    }
}
