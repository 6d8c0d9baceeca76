package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// A provider's own page in pickers, and what it answers: an identifier, and nothing else.
package struct PickerPages: Sendable {
    private static let patience = Duration.seconds(10)

    let tree: DomainTree

    /// Nil: the provider has none for that mode. It is a stranger's text.
    package func page(mode: String) async throws(Failure) -> [UInt8]? {
        guard tree.provider.capabilities.contains(.pickerPages) else { return nil }
        do throws(ProviderError) {
            return try await withDeadline(
                PickerPages.patience, "the provider did not answer",
                { [tree] () async throws(ProviderError) in
                    try await tree.provider.pickerPage(mode: mode)
                })
        } catch {
            throw Failure(.offline, "the provider's page cannot be had: \(error.message)")
        }
    }

    /// From the root of the mount, as far as the item is known here.
    package func path(
        ofIdentifier identifier: String
    ) throws(Failure) -> (path: [FileName], kind: NodeKind) {
        try tree.index.read { transaction throws(Failure) in
            guard identifier.utf8.count <= 1024,
                let entry = try transaction.entry(for: ItemIdentifier(identifier)),
                let node = try transaction.node(entry.node),
                let path = try transaction.path(of: entry.node)
            else { throw Failure(.notFound, "the provider's page picked what is not known here") }
            return (path, node.kind)
        }
    }
}

extension DocumentServices {
    package var pages: PickerPages { PickerPages(tree: tree) }
}
