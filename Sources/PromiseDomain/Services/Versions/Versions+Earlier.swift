import Glibc
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

/// What the provider has kept of what documents were before, and what was given up here.
extension Versions {
    /// What the provider has kept of what a document was before, the newest first. Asks the
    /// provider: throws `.offline` and `.timedOut` as a fetch does.
    package func earlier(of id: NodeID) async throws(Failure) -> [ItemVersion] {
        guard let reference = try earlierReference(id) else { return [] }
        guard let path = items.path(of: id) else {
            throw Failure(.gone, "the document was removed meanwhile")
        }
        return try await keptVersions(reference).map { kept in
            ItemVersion(
                kind: .earlier, node: nil, path: path, version: kept.version, size: kept.size,
                modificationTime: kept.modificationTime, isLocal: false,
                earlierIdentifier: kept.identifier)
        }
    }

    private func keptVersions(_ reference: ItemReference) async throws(Failure) -> [EarlierVersion] {
        try await items.tree.asking { [provider = items.tree.provider] () throws(ProviderError) in
            try await provider.earlierVersions(of: reference)
        }
    }

    /// The bytes of one of them, in a file beside the store. Throws `.notFound` when the provider
    /// has it no more.
    package func contents(ofEarlier identifier: String, of id: NodeID) async throws(Failure)
        -> Snapshot
    {
        if identifier.hasPrefix("given-up-") {
            return try await contents(ofGivenUp: identifier, of: items.path(of: id) ?? [])
        }
        guard let reference = try earlierReference(id),
            let earlier = try await keptVersions(reference).first(where: {
                $0.identifier == identifier
            })
        else { throw Failure(.notFound, "the provider has no earlier version of that name") }
        let name = items.path(of: id)?.last?.bytes ?? Array("version".utf8)
        let snapshot = try await snapshots.pool.run { [self] () throws(Failure) in
            try snapshots.place(named: name)
        }
        let file: SharedDescriptor
        do throws(SystemError) {
            let flags = O_RDWR | O_CREAT | O_TRUNC
            file = SharedDescriptor(
                try Descriptor.open(
                    snapshot.path, flags: flags, mode: 0o600, label: "version.create"))
        } catch {
            throw Failure(error)
        }
        do throws(ProviderError) {
            let sink = FileSink(file, size: earlier.size)
            try await items.tree.provider.fetchContents(
                of: reference, earlier: earlier, into: sink)
            // A network's login page comes with success, too.
            guard sink.count == earlier.size else {
                throw ProviderError(
                    .retry,
                    "the provider sent \(sink.count) bytes of an earlier version of "
                        + "\(earlier.size)")
            }
        } catch {
            throw error.failure
        }
        return snapshot
    }

    package func contents(ofGivenUp identifier: String, of path: [FileName]) async throws(Failure)
        -> Snapshot
    {
        try await snapshots.pool.run { [self] () throws(Failure) in
            let snapshot = try snapshots.place(named: path.last?.bytes ?? Array("version".utf8))
            if try reversal.take(identifier, of: path, to: snapshot.path) { return snapshot }
            throw Failure(.notFound, "this was not given up, or had to make room")
        }
    }

    /// Nil when the provider has nothing of it.
    private func earlierReference(_ id: NodeID) throws(Failure) -> ItemReference? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entries(of: id).first,
                let node = try transaction.node(id)
            else {
                throw Failure(.stale, "the item is gone")
            }
            guard node.kind == .file else {
                throw Failure(.isFolder, "only files have earlier versions")
            }
            guard let identifier = entry.identifier else { return nil }
            return try items.tree.engine.reference(to: identifier, transaction)
        }
    }
}
