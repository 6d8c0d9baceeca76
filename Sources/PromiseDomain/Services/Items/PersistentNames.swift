import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync

/// What a provider calls items for good, for who notes one to find it again although its identifier
/// has changed. A provider that has no such names, or does not answer, changes nothing.
struct PersistentNames: Sendable {
    private static let patience = Duration.seconds(10)

    let tree: DomainTree
    let search: ItemSearch

    private var areThere: Bool {
        tree.provider.capabilities.contains(.persistentIdentifiers)
            && tree.engine.connectionFailure == nil
    }

    /// Nil before the provider has the item, too.
    func name(of entry: Entry) async -> String? {
        guard areThere, let identifier = entry.identifier else { return nil }
        let reference = ItemReference(identifier: identifier, path: [])
        let name = try? await withDeadline(
            PersistentNames.patience, "the provider did not answer",
            { [tree] () async throws(ProviderError) in
                try await tree.provider.persistentIdentifier(of: reference)
            })
        return name ?? nil
    }

    /// Nil unless the provider shows an item of that name, of the kind that was noted.
    func find(_ bookmark: Bookmark) async throws(Failure) -> ItemFinder.Finding? {
        guard areThere, let persistent = bookmark.persistent else { return nil }
        let shown = try? await withDeadline(
            PersistentNames.patience, "the provider did not answer",
            { [tree, search] () async throws(ProviderError) -> ItemIdentifier? in
                guard
                    let identifier = try await tree.provider.identifier(ofPersistent: persistent),
                    try await search.findByIdentifier(identifier)
                else { return nil }
                return identifier
            })
        guard let identifier = shown ?? nil else { return nil }
        var key = bookmark.key
        (key.identifier, key.machine) = (identifier, nil)
        let finding = try tree.look(for: key, bound: nil)
        return finding.fate == .found ? finding : nil
    }
}
