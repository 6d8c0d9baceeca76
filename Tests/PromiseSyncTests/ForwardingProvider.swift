import PromiseCore
import PromiseProvider
import PromiseTestSupport

/// A provider that does what another one in memory does, but for what it defines itself.
protocol ForwardingProvider: Provider {
    var memory: MemoryProvider { get }
    /// Who does it: the memory, or what is in front of it.
    var target: any Provider { get }
}

extension ForwardingProvider {
    var target: any Provider { memory }
    var name: String { "forwarding:" }
    var capabilities: Capabilities { target.capabilities }
    func connect() async throws(ProviderError) { try await target.connect() }
    func root() async throws(ProviderError) -> Item { try await target.root() }
    func item(for reference: ItemReference) async throws(ProviderError) -> Item { try await target.item(for: reference) }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await target.enumerateItems(in: folder, page: page)
    }

    func currentAnchor() async throws(ProviderError) -> Anchor { try await target.currentAnchor() }
    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage { try await target.changes(since: anchor) }
    func waitForChanges(since anchor: Anchor) async throws(ProviderError) { try await target.waitForChanges(since: anchor) }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await target.fetchContents(of: reference, version: version, range: range, into: sink)
    }

    func create(_ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?) async throws(ProviderError) -> Item {
        try await target.create(item, in: folder, contents: contents)
    }

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await target.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await target.delete(reference, baseVersion: baseVersion)
    }
}
