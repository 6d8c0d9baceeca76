package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// A provider's own page in pickers, and what it answers: an identifier, and nothing else.
package struct PickerPages: Sendable {
    private static let patience = Duration.seconds(10)

    let tree: DomainTree
    let search: ItemSearch

    /// Nil: the provider has none for that mode. It is a stranger's text.
    package func page(mode: String) async throws(Failure) -> [UInt8]? {
        do throws(ProviderError) {
            return try await withDeadline(
                PickerPages.patience, "the provider did not answer",
                { [tree] () async throws(ProviderError) in
                    try await tree.provider.answered()
                    guard tree.provider.capabilities.contains(.pickerPages) else { return nil }
                    return try await tree.provider.pickerPage(mode: mode)
                })
        } catch {
            throw Failure(.offline, "the provider's page cannot be had: \(error.message)")
        }
    }

    /// From the root of the mount. What was never listed here is looked for at the provider.
    package func path(
        ofIdentifier identifier: String
    ) async throws(Failure) -> (path: [FileName], kind: NodeKind) {
        guard identifier.utf8.count <= 1024 else { throw PickerPages.isGone }
        let identifier = ItemIdentifier(identifier)
        if let known = try known(identifier) { return known }
        let isThere: Bool
        do throws(ProviderError) {
            isThere = try await withDeadline(
                PickerPages.patience, "it did not answer in time",
                { [search] () async throws(ProviderError) in
                    try await search.findByIdentifier(identifier)
                })
        } catch {
            if error.code == .notFound { throw PickerPages.isGone }
            throw Failure(
                .offline, "the provider cannot say where its page's item is: \(error.message)")
        }
        guard isThere, let found = try known(identifier) else { throw PickerPages.isGone }
        return found
    }

    private static let isGone = Failure(
        .notFound, "the provider has no such item any more as its page picked")

    private func known(
        _ identifier: ItemIdentifier
    ) throws(Failure) -> (path: [FileName], kind: NodeKind)? {
        try tree.index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(for: identifier),
                let node = try transaction.node(entry.node),
                let path = try transaction.path(of: entry.node)
            else { return nil }
            return (path, node.kind)
        }
    }
}

extension DocumentServices {
    package var pages: PickerPages { PickerPages(tree: tree, search: search) }
}
