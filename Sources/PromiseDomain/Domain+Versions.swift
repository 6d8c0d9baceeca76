import Glibc
package import PromiseCoordination
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

// The versions of a document that are known: its own, the provider's, and those of unresolved conflicts; and what is done with
// the latter.

/// One version of a document.
package struct ItemVersion: Sendable, Hashable {
    package enum Kind: String, Sendable {
        /// What the document's name shows.
        case current
        /// What the provider has, where that is another one: not followed yet, or about to be replaced by what is here.
        case provider
        /// The other side of a conflict, a file of its own until somebody deals with it.
        case conflict
        /// What the document was before; the provider has kept it.
        case earlier
    }

    package var kind: Kind
    /// Nil for the provider's, which has no name of its own here.
    package var node: NodeID?
    package var path: [FileName]
    /// The provider's name of the version; nil before the provider has it.
    package var version: ContentVersion?
    package var size: UInt64
    package var modificationTime: Timestamp
    /// The content is on this machine.
    package var isLocal: Bool
    /// Of an earlier version: the provider's name of it, as long as it is kept.
    package var earlierIdentifier: String?

    package init(
        kind: Kind, node: NodeID?, path: [FileName], version: ContentVersion?, size: UInt64, modificationTime: Timestamp,
        isLocal: Bool, earlierIdentifier: String? = nil
    ) {
        self.earlierIdentifier = earlierIdentifier
        self.kind = kind
        self.node = node
        self.path = path
        self.version = version
        self.size = size
        self.modificationTime = modificationTime
        self.isLocal = isLocal
    }
}

/// What to do with versions that a conflict has left.
package enum VersionAction: String, Sendable, CaseIterable {
    /// One of them becomes the document's content; it and what the document was go.
    case replace
    /// They go; the document stays as it is.
    case remove
    /// They stay as documents of their own.
    case markResolved
}

extension Domain {
    /// Does something with one unresolved version of a document, or with all of them. `version`: its node; nil: all. Waits for
    /// claims and asks presenters, but those of `purpose`. Fetches the version that replaces. Returns what versions are left.
    /// Throws `.notFound` when there is none, `.timedOut` when somebody does not let go.
    package func resolve(
        _ id: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?
    ) async throws(Failure) -> [ItemVersion] {
        let known = try versions(of: id)
        guard let document = known.first else { throw Failure(.stale, "the item is gone") }
        let affected = known.filter { $0.kind == .conflict && (version == nil || $0.node == version) }
        guard !affected.isEmpty else {
            throw Failure(.notFound, version == nil ? "it has no unresolved version" : "this is no unresolved version of it")
        }
        if action == .replace {
            guard version != nil, let node = affected[0].node else {
                throw Failure(.invalid, "only one version can replace the document: say which")
            }
            if !affected[0].isLocal, let failure = await hydrate(node) { throw failure }
        }
        var claim: GrantedClaim?
        if filesystem.coordinator.isActive {
            let access: Access = action == .markResolved ? .write(.contentIndependentMetadataOnly) : .write(.forDeleting)
            let items = [(path: document.path, access: Access.write([]))] + affected.map { (path: $0.path, access: access) }
            claim = try await self.claim(
                ClaimRequest(items: items, purpose: purpose, process: 0, timeout: Domain.evictionPatience))
        }
        defer { if let claim { release(claim.id) } }
        for node in affected.compactMap(\.node) {
            switch action {
            case .replace: try filesystem.replaceDocument(with: node)
            case .remove: try filesystem.removeVersion(node)
            case .markResolved: try filesystem.markResolved(node)
            }
        }
        return try versions(of: try await node(at: document.path))
    }

    /// Of a document, or of the one that an unresolved version belongs to. The first one is the current version.
    package func versions(of id: NodeID) throws(Failure) -> [ItemVersion] {
        if id == .root { throw Failure(.isFolder, "only documents have versions") }
        return try index.read { transaction throws(Failure) in
            guard let asked = try transaction.entries(of: id).first else { throw Failure(.stale, "the item is gone") }
            var document = asked
            if let other = asked.conflictsWith, let entry = try transaction.entry(for: other) { document = entry }
            guard let node = try transaction.node(document.node) else { throw Failure(.stale, "the item is gone") }
            guard node.kind == .file || node.kind == .link else { throw Failure(.isFolder, "only documents have versions") }
            var result = [try version(.current, of: document, node, transaction)]
            guard let identifier = document.identifier else { return result }
            if let there = try provided(identifier, node, transaction) {
                result.append(
                    ItemVersion(
                        kind: .provider, node: nil, path: result[0].path, version: there.version, size: there.size,
                        modificationTime: there.metadata.modificationTime, isLocal: false))
            }
            for entry in try transaction.conflicts(with: identifier, in: document.parent) {
                guard let node = try transaction.node(entry.node) else { continue }
                result.append(try version(.conflict, of: entry, node, transaction))
            }
            return result
        }
    }

    /// Why there are no earlier versions, for people.
    package var earlierVersionsNote: String { "earlier versions are the provider's, which is asked for them by --earlier" }

    private func version(
        _ kind: ItemVersion.Kind, of entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemVersion {
        guard let folder = try transaction.path(of: entry.parent) else {
            throw Failure(.gone, "the document was removed meanwhile")
        }
        let synced = try entry.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
        let isSent = synced.map { $0.edits == node.edits } ?? false
        return ItemVersion(
            kind: kind, node: node.id, path: folder + [entry.name], version: isSent ? node.version : nil, size: node.size,
            modificationTime: node.modificationTime, isLocal: node.kind == .link || node.content == .whole)
    }

    /// What the provider has, when that is not what is here.
    private func provided(
        _ identifier: ItemIdentifier, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        if case .present(let item)? = try transaction.remote(identifier) { return item.version == node.version ? nil : item }
        guard let synced = try transaction.synced(identifier), synced.edits != node.edits else { return nil }
        return synced.item
    }
}

// MARK: - Earlier versions

extension Domain {
    /// What the provider has kept of what a document was before, the newest first. Asks the provider: throws `.offline` and
    /// `.timedOut` as a fetch does.
    package func earlierVersions(of id: NodeID) async throws(Failure) -> [ItemVersion] {
        guard let reference = try earlierReference(id) else { return [] }
        guard let path = path(of: id) else { throw Failure(.gone, "the document was removed meanwhile") }
        return try await keptVersions(reference).map { kept in
            ItemVersion(
                kind: .earlier, node: nil, path: path, version: kept.version, size: kept.size,
                modificationTime: kept.modificationTime, isLocal: false, earlierIdentifier: kept.identifier)
        }
    }

    private func keptVersions(_ reference: ItemReference) async throws(Failure) -> [EarlierVersion] {
        if let failure = engine.connectionFailure { throw failure }
        do throws(ProviderError) {
            return try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
                [provider] () throws(ProviderError) in
                try await provider.earlierVersions(of: reference)
            }
        } catch {
            throw error.failure
        }
    }

    /// The bytes of one of them, in a file beside the store. Throws `.notFound` when the provider has it no more.
    package func contents(ofEarlier identifier: String, of id: NodeID) async throws(Failure) -> Snapshot {
        guard let reference = try earlierReference(id),
            let earlier = try await keptVersions(reference).first(where: { $0.identifier == identifier })
        else { throw Failure(.notFound, "the provider has no earlier version of that name") }
        let name = path(of: id)?.last?.bytes ?? Array("version".utf8)
        let snapshot = try await snapshots.pool.run { [self] () throws(Failure) in try snapshotPlace(named: name) }
        let file: SharedDescriptor
        do throws(SystemError) {
            let flags = O_RDWR | O_CREAT | O_TRUNC
            file = SharedDescriptor(try Descriptor.open(snapshot.path, flags: flags, mode: 0o600, label: "version.create"))
        } catch {
            throw Failure(error)
        }
        do throws(ProviderError) {
            try await provider.fetchContents(of: reference, earlier: earlier, into: FileSink(file))
        } catch {
            throw error.failure
        }
        return snapshot
    }

    /// Nil when the provider has nothing of it.
    private func earlierReference(_ id: NodeID) throws(Failure) -> ItemReference? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entries(of: id).first, let node = try transaction.node(id) else {
                throw Failure(.stale, "the item is gone")
            }
            guard node.kind == .file else { throw Failure(.isFolder, "only files have earlier versions") }
            guard let identifier = entry.identifier else { return nil }
            return try engine.reference(to: identifier, transaction)
        }
    }
}
