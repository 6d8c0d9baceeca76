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
            let node: NodeID
            var isNew = true
            do throws(Failure) {
                node = try await tree.makeFolder(name, in: .root)
            } catch where error.code == .exists {
                guard String(decoding: name.bytes, as: UTF8.self).contains(key.text) else { continue }
                node = try await tree.node(at: [name])
                isNew = false
                guard try tree.key(of: NamedItem(node: node)).key.kind == .folder else { continue }
            }
            let known = try tree.key(of: NamedItem(node: node))
            if known.entry.isExcluded {
                if isNew { try? await tree.removeFolder(known.entry.name, in: known.entry.parent) }
                throw Failure(
                    .invalid, "a folder that is called '\(shown)' stays on this machine: give another --name")
            }
            try await makeDocuments(in: node)
            let record = ContainerRecord(
                application: key, name: shown, isPublic: isPublic, folder: known.key)
            return KnownContainer(
                record: record, entry: known.entry.id, isSent: false, wasSent: false)
        }
        throw Failure(
            .exists, "something else is called '\(shown)' in this domain: give another --name")
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
