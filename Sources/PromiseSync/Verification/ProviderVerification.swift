package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseProvider

/// Compares what was last agreed on with the provider, folder by folder, and clean local content
/// byte by byte.
///
/// What is known to differ (news not followed yet, changes not told yet) is no problem. Folders
/// that were never listed are not looked at. Reads everything that is both here and there, so it
/// takes as long as fetching that.
package struct ProviderVerification: Sendable {
    /// A file whose content here is not what the provider has under the same version.
    package struct Difference: Sendable {
        package var node: Node
        package var problem: String
    }

    private let index: Index
    private let content: ContentStore
    private let provider: any Provider
    private let rootIdentifier: ItemIdentifier
    /// How long a page may take, and a file of no size.
    private let patience: Duration
    /// Fetches that are slower do not end.
    private static let slowestBytesPerSecond: UInt64 = 16 << 10

    package init(
        index: Index, content: ContentStore, provider: any Provider, rootIdentifier: ItemIdentifier,
        patience: Duration = .seconds(60)
    ) {
        self.patience = patience
        self.index = index
        self.content = content
        self.provider = provider
        self.rootIdentifier = rootIdentifier
    }

    // MARK: Items

    /// A sentence for each item that the two sides tell apart.
    package func compareItems() async throws(Failure) -> [String] {
        var problems: [String] = []
        let folders = try index.read { transaction throws(Failure) in
            try transaction.populatedFolders()
        }
        for folder in folders {
            guard let reference = try reference(to: folder) else { continue }
            do throws(ProviderError) {
                problems += try compare(folder, reference, with: try await list(reference))
            } catch {
                guard error.code == .notFound else { throw error.failure }
                problems.append("the provider has no folder '\(shown(reference.path))' any more")
            }
        }
        return problems
    }

    /// nil for a folder that the provider is not known to have.
    private func reference(to folder: NodeID) throws(Failure) -> ItemReference? {
        try index.read { transaction throws(Failure) in
            let entry = try transaction.entries(of: folder).first
            guard let identifier = folder == .root ? rootIdentifier : entry?.identifier,
                let path = try transaction.remotePath(of: identifier)
            else { return nil }
            return ItemReference(identifier: identifier, path: path)
        }
    }

    private func list(_ folder: ItemReference) async throws(ProviderError) -> [Item] {
        var found: [Item] = []
        var page: PageToken?
        var turns = PageTurns()
        repeat {
            let silence = "the provider did not answer for '\(shown(folder.path))'"
            let answer = try await withDeadline(patience, silence) { [provider, page] () throws(ProviderError) in
                try await provider.enumerateItems(in: folder, page: page)
            }
            found += answer.items
            page = answer.next
            if let page { try turns.take(page, first: answer.items.first?.identifier) }
        } while page != nil
        return found
    }

    /// By the identifiers that they have here: at a store that knows places only, an item keeps its
    /// identifier when it is moved, and what is at a place is what is known there.
    private func identified(
        _ items: [Item], in parent: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemIdentifier: Item] {
        let byPlace = provider.capabilities.contains(.placeIdentifiers)
        var result: [ItemIdentifier: Item] = [:]
        for item in items {
            var identifier = item.identifier
            if byPlace {
                let known = try transaction.knownItem(in: parent, named: item.name)
                let isKnown = known?.kind == item.kind
                // What is not known there may be where a known one was before.
                let fresh = ItemIdentifier("unknown \(item.name)")
                identifier = isKnown ? known?.identifier ?? fresh : fresh
            }
            result[identifier] = item
        }
        return result
    }

    private func compare(
        _ folder: NodeID, _ reference: ItemReference, with found: [Item]
    ) throws(ProviderError) -> [String] {
        do throws(Failure) {
            return try index.read { transaction throws(Failure) in
                var problems: [String] = []
                var rest = try identified(found, in: reference.identifier, transaction)
                for known in try transaction.syncedChildren(of: reference.identifier).map(\.item) {
                    let item = rest.removeValue(forKey: known.identifier)
                    if try isInMotion(known.identifier, transaction) { continue }
                    let name = "'\(shown(reference.path + [known.name]))'"
                    if let item {
                        if item.kind != .folder, item.version != known.version {
                            problems.append(
                                "the provider has another version of \(name) than the index knows")
                        } else if item.name != known.name {
                            problems.append("\(name) is called '\(item.name)' at the provider")
                        }
                    } else {
                        problems.append("the provider has no \(name) any more")
                    }
                }
                for (identifier, item) in rest where try !isInMotion(identifier, transaction) {
                    let name = "'\(shown(reference.path + [item.name]))'"
                    problems.append("the provider has \(name), of which the index does not know")
                }
                return problems.sorted()
            }
        } catch {
            throw ProviderError(.permanent, error.message)
        }
    }

    /// One side has news that the other has not heard.
    private func isInMotion(_ identifier: ItemIdentifier, _ transaction: borrowing Transaction)
        throws(Failure) -> Bool
    {
        if try transaction.remote(identifier) != nil { return true }
        if try transaction.pending(.deletion(identifier)) != nil { return true }
        guard let entry = try transaction.entry(for: identifier) else { return false }
        return try transaction.pending(.entry(entry.id)) != nil
    }

    private func shown(_ path: [FileName]) -> String { path.map(\.display).joined(separator: "/") }

    // MARK: Content

    /// Files whose bytes here are not the provider's. One that changes while it is read is left
    /// out.
    package func compareContents() async throws(Failure) -> [Difference] {
        let nodes: [Node] = try index.read { transaction throws(Failure) in
            try transaction.nodesWithContent(in: .whole)
        }
        var differences: [Difference] = []
        for node in nodes where node.linkCount > 0 && !node.isOpenForWriting {
            guard let (reference, version) = try source(of: node),
                let source = try? UploadSource(content, node: node.id, generation: node.generation),
                source.size == node.size
            else { continue }
            let sink = ComparingSink(source)
            let limit = patience + .seconds(Int64(node.size / ProviderVerification.slowestBytesPerSecond))
            let silence = "the provider did not give the content of '\(shown(reference.path))' in time"
            do throws(ProviderError) {
                try await withDeadline(limit, silence) { [provider] () throws(ProviderError) in
                    try await provider.fetchContents(
                        of: reference, version: version, range: nil, into: sink)
                }
            } catch {
                guard error.message == ComparingSink.differs.message else {
                    // The provider has another version by now, which `compareItems` says.
                    if error.code == .stale || error.code == .notFound { continue }
                    throw error.failure
                }
                guard (try? source.validate()) != nil else { continue }
                let problem =
                    "the content of '\(shown(reference.path))' is not what the provider has"
                differences.append(Difference(node: node, problem: problem))
            }
        }
        return differences
    }

    /// nil for what the provider does not have in this state.
    private func source(of node: Node) throws(Failure) -> (ItemReference, ContentVersion)? {
        try index.read { transaction throws(Failure) in
            guard let agreed = try transaction.agreedItem(of: node.id), agreed.edits == node.edits,
                agreed.item.version == node.version,
                let path = try transaction.remotePath(of: agreed.item.identifier)
            else { return nil }
            return (
                ItemReference(identifier: agreed.item.identifier, path: path), agreed.item.version
            )
        }
    }
}
