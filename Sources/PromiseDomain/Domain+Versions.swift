package import PromiseCoordination
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider

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

    package init(
        kind: Kind, node: NodeID?, path: [FileName], version: ContentVersion?, size: UInt64, modificationTime: Timestamp,
        isLocal: Bool
    ) {
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
        try index.read { transaction throws(Failure) in
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
    package var earlierVersionsNote: String {
        provider.capabilities.contains(.versions)
            ? "the provider keeps earlier versions, which can be seen only there" : "the provider keeps no earlier versions"
    }

    private func version(
        _ kind: ItemVersion.Kind, of entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemVersion {
        let path = try transaction.path(of: entry.parent).map { $0 + [entry.name] }
        let synced = try entry.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
        let isSent = synced.map { $0.edits == node.edits } ?? false
        return ItemVersion(
            kind: kind, node: node.id, path: path ?? [], version: isSent ? node.version : nil, size: node.size,
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
