package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync

/// Links by which anybody reaches an item at the storage. Of the owner alone.
package struct Sharing: Sendable {
    package struct Link: Sendable, Hashable {
        /// For `revoke`; nil: it cannot be revoked.
        package var identifier: String?
        package var address: String
        package var path: [FileName]?
        package var end: Timestamp?

        fileprivate init(_ link: SharingLink) {
            (identifier, address, path, end) = (link.identifier, link.address, link.path, link.end)
        }
    }

    let tree: DomainTree

    /// A link to what the storage has. Throws `.busy` for what it does not have yet, and `.refused` where it makes no such link.
    package func share(_ path: [FileName], _ node: NodeID, until end: Timestamp?) async throws(Failure) -> Link {
        let links = try await links()
        let (reference, kind) = try tree.index.read { transaction throws(Failure) in
            try stored(path, node, transaction)
        }
        return Link(try await asking { () throws(ProviderError) in try await links.make(to: reference, kind: kind, until: end) })
    }

    package func list() async throws(Failure) -> [Link] {
        let links = try await links()
        return try await asking { () throws(ProviderError) in try await links.list() }.map { Link($0) }
    }

    package func revoke(_ identifier: String) async throws(Failure) {
        let links = try await links()
        try await asking { () throws(ProviderError) in try await links.revoke(identifier) }
    }

    private func asking<Value: Sendable>(
        _ call: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async throws(Failure) -> Value {
        try await tree.asking(telling: [.notFound: .notFound], call)
    }

    private func links() async throws(Failure) -> any SharingLinks {
        let links = try await asking { [tree] () throws(ProviderError) in tree.provider.sharingLinks }
        if let links { return links }
        throw Failure(
            .refused,
            "'\(tree.provider.name)' has no links for others: only S3, Nextcloud, ownCloud and some "
                + "extensions make them")
    }

    /// What others would get by the link is what is here.
    private func stored(
        _ path: [FileName], _ node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> (ItemReference, NodeKind) {
        guard let found = try transaction.node(node) else { throw Failure(.stale, "the item is gone") }
        var own: Entry?
        for entry in try transaction.entries(of: node)
        where try transaction.path(of: entry.parent).map({ $0 + [entry.name] }) == path {
            own = entry
        }
        guard let entry = own else {
            throw Failure(.refused, "the root of a mount cannot be shared: share what is in it")
        }
        guard let identifier = entry.identifier, try transaction.pending(.entry(entry.id)) == nil,
            let reference = try tree.engine.reference(to: identifier, transaction)
        else {
            throw Failure(
                .busy, "'\(entry.name.display)' as it is here is not stored at the provider yet: 'promisefs sync --wait' waits "
                    + "for that")
        }
        return (reference, found.kind)
    }
}
