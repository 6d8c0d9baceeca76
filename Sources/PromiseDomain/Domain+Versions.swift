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
    /// `states`: of the versions, as they were when this was decided; nil: as they are now, before anybody is waited for.
    /// Throws `.notFound` when there is none, `.timedOut` when somebody does not let go, `.conflict` when what
    /// would go was written since it had one of these states.
    package func resolve(
        _ id: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?, decidedOn states: Set<String>? = nil
    ) async throws(Failure) -> [ItemVersion] {
        let known = try versions(of: id)
        let states = states ?? Set(known.compactMap(\.state))
        guard let document = known.first else { throw Failure(.stale, "the item is gone") }
        let affected = known.filter { $0.kind == .conflict && (version == nil || $0.node == version) }
        guard !affected.isEmpty else {
            let none = "the document has no unresolved version: there is nothing to decide"
            throw Failure(.notFound, version == nil ? none : "this is no unresolved version of it")
        }
        if configuration.isReadOnly {
            throw Failure(.readOnly, "the domain is mounted read-only: its versions stay as they are")
        }
        // What is left of a document that was removed replaces nothing: it becomes a document.
        let isRemoved = document.kind == .conflict
        let action = isRemoved && action == .replace ? .markResolved : action
        if action == .replace {
            guard version != nil, let node = affected[0].node else {
                throw Failure(.invalid, "only one version can replace the document: say which")
            }
            if !affected[0].isLocal, let failure = await hydrate(node) { throw failure }
        }
        var claim: GrantedClaim?
        if filesystem.coordinator.isActive {
            let access: Access = action == .markResolved ? .write(.contentIndependentMetadataOnly) : .write(.forDeleting)
            let items =
                (isRemoved ? [] : [(path: document.path, access: Access.write([]))])
                + affected.map { (path: $0.path, access: access) }
            claim = try await self.claim(
                ClaimRequest(items: items, purpose: purpose, process: 0, timeout: Domain.evictionPatience))
        }
        defer { if let claim { release(claim.id) } }
        let newest = index.newestChange
        defer { if let purpose { filesystem.coordinator.resolved(for: purpose, from: newest, to: index.newestChange) } }
        for node in affected.compactMap(\.node) {
            switch action {
            case .replace: try filesystem.replaceDocument(with: node, in: states)
            case .remove: try filesystem.removeVersion(node, in: states)
            case .markResolved: try filesystem.markResolved(node)
            }
        }
        if isRemoved { return try KnownVersions(index: index, content: content).left(of: known) }
        return try versions(of: try await node(at: document.path))
    }

    package func versions(of id: NodeID) throws(Failure) -> [ItemVersion] {
        try KnownVersions(index: index, content: content).all(of: id)
    }

    /// Why there are no earlier versions, for people.
    package var earlierVersionsNote: String { "earlier versions are the provider's, which is asked for them by --earlier" }
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
        if identifier.hasPrefix("given-up-") { return try await contents(ofGivenUp: identifier, of: path(of: id) ?? []) }
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

    package func contents(ofGivenUp identifier: String, of path: [FileName]) async throws(Failure) -> Snapshot {
        try await snapshots.pool.run { [self] () throws(Failure) in
            let snapshot = try snapshotPlace(named: path.last?.bytes ?? Array("version".utf8))
            if try services.reversal.take(identifier, of: path, to: snapshot.path) { return snapshot }
            throw Failure(.notFound, "this was not given up, or had to make room")
        }
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
