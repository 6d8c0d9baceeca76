import PromiseContent
package import PromiseCoordination
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem

/// What to do with versions that a conflict has left.
package enum VersionAction: String, Sendable, CaseIterable {
    /// One of them becomes the document's content; it and what the document was go.
    case replace
    /// They go; the document stays as it is.
    case remove
    /// They stay as documents of their own.
    case markResolved
}

/// The versions of a document that are known: its own, the provider's, and those of unresolved
/// conflicts; and what is done with the latter.
package struct Versions: Sendable {
    let items: Items
    let snapshots: Snapshots
    let reversal: Reversal
    let content: ContentStore

    var index: Index { items.tree.index }
    private var filesystem: FileSystem { items.tree.filesystem }
    private var coordination: Coordination { items.coordination }

    /// Does something with one unresolved version of a document, or with all of them. `version`:
    /// its node; nil: all. Waits for claims and asks presenters, but those of `purpose`. Fetches
    /// the version that replaces. Returns what versions are left. `states`: of the versions, as
    /// they were when this was decided; nil: as they are now, before anybody is waited for. Throws
    /// `.notFound` when there is none, `.timedOut` when somebody does not let go, `.conflict` when
    /// what would go was written since it had one of these states.
    package func resolve(
        _ id: NodeID, _ action: VersionAction, version: NodeID?, purpose: Purpose?,
        decidedOn states: Set<String>? = nil
    ) async throws(Failure) -> [ItemVersion] {
        let known = try all(of: id)
        let states = states ?? Set(known.compactMap(\.state))
        guard let document = known.first else { throw Failure(.stale, "the item is gone") }
        let affected = known.filter {
            $0.kind == .conflict && (version == nil || $0.node == version)
        }
        guard !affected.isEmpty else {
            let none = "the document has no unresolved version: there is nothing to decide"
            throw Failure(.notFound, version == nil ? none : "this is no unresolved version of it")
        }
        if items.tree.isReadOnly {
            throw Failure(
                .readOnly, "the domain is mounted read-only: its versions stay as they are")
        }
        // What is left of a document that was removed replaces nothing: it becomes a document.
        let isRemoved = document.kind == .conflict
        let action = isRemoved && action == .replace ? .markResolved : action
        if action == .replace {
            guard version != nil, let node = affected[0].node else {
                throw Failure(.invalid, "only one version can replace the document: say which")
            }
            if !affected[0].isLocal, let failure = await items.hydrate(node) { throw failure }
        }
        var claim: GrantedClaim?
        if filesystem.coordinator.isActive {
            let access: Access =
                action == .markResolved
                ? .write(.contentIndependentMetadataOnly) : .write(.forDeleting)
            let items =
                (isRemoved ? [] : [(path: document.path, access: Access.write([]))])
                + affected.map { (path: $0.path, access: access) }
            claim = try await coordination.claim(
                ClaimRequest(
                    items: items, purpose: purpose, process: 0,
                    timeout: Coordination.evictionPatience))
        }
        defer { if let claim { coordination.release(claim.id) } }
        let newest = index.newestChange
        defer {
            if let purpose {
                filesystem.coordinator.resolved(for: purpose, from: newest, to: index.newestChange)
            }
        }
        for node in affected.compactMap(\.node) {
            switch action {
            case .replace: try filesystem.replaceDocument(with: node, in: states)
            case .remove: try filesystem.removeVersion(node, in: states)
            case .markResolved: try filesystem.markResolved(node)
            }
        }
        if isRemoved { return try KnownVersions(index: index, content: content).left(of: known) }
        return try all(of: try await items.node(at: document.path))
    }

    package func all(of id: NodeID) throws(Failure) -> [ItemVersion] {
        try KnownVersions(index: index, content: content).all(of: id)
    }

    /// Why there are no earlier versions, for people.
    package var earlierNote: String {
        "earlier versions are the provider's, which is asked for them by --earlier"
    }
}
