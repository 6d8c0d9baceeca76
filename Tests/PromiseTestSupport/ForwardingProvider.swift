package import PromiseCore
package import PromiseProvider

/// A provider that does what another one in memory does, but for what it defines itself.
package protocol ForwardingProvider: Provider {
    var memory: MemoryProvider { get }
    /// Who does it: the memory, or what is in front of it.
    var target: any Provider { get }
}

extension ForwardingProvider {
    package var target: any Provider { memory }
    package var name: String { "forwarding:" }
    package var capabilities: Capabilities { target.capabilities }
    package func connect() async throws(ProviderError) { try await target.connect() }
    package func root() async throws(ProviderError) -> Item { try await target.root() }
    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await target.item(for: reference)
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await target.enumerateItems(in: folder, page: page)
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor { try await target.currentAnchor() }
    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await target.changes(since: anchor)
    }
    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await target.waitForChanges(since: anchor)
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await target.fetchContents(of: reference, version: version, range: range, into: sink)
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await target.create(item, in: folder, contents: contents)
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await target.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await target.delete(reference, baseVersion: baseVersion)
    }
}
