import PromiseCore
import PromiseProvider
import PromiseTestSupport

/// A storage in memory with one of the abilities that few have, which does one thing wrong where a test wants it.
final class KeepingProvider: ForwardingProvider {
    let memory: MemoryProvider
    let sharingLinks: (any SharingLinks)?
    private let past: MemoryPast?
    private let memoryBin: MemoryBin?
    var bin: (any ProviderBin)? { memoryBin }

    init(linking conduct: LinkConduct) {
        memory = MemoryProvider(MemoryProvider.capabilities.union(.sharingLinks))
        (sharingLinks, past, memoryBin) = (MemoryLinks(memory, conduct), nil, nil)
    }

    init(keepingVersions conduct: VersionConduct) {
        memory = MemoryProvider(MemoryProvider.capabilities.union(.versions))
        (sharingLinks, past, memoryBin) = (nil, MemoryPast(memory, conduct), nil)
    }

    init(keepingRemoved conduct: BinConduct) {
        memory = MemoryProvider(MemoryProvider.capabilities.union(.removedItems))
        (sharingLinks, past, memoryBin) = (nil, nil, MemoryBin(memory, conduct))
    }

    /// What the checks of its ability say.
    func report(_ ability: Capabilities) async -> ConformanceReport {
        let root = ItemReference(identifier: MemoryProvider.rootIdentifier, path: [])
        return await ConformanceSuite(provider: self, folder: root).run(needing: ability)
    }

    // MARK: Provider

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        let before = await memory.items[reference.identifier]
        let item = try await memory.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
        if contents != nil, let before { past?.keep(before) }
        return item
    }
    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        let before = await memory.items[reference.identifier]
        try await memory.delete(reference, baseVersion: baseVersion)
        if let before { memoryBin?.keep(before, at: reference.path) }
    }
    func earlierVersions(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] {
        try await past?.list(of: reference) ?? []
    }
    func fetchContents(
        of reference: ItemReference, earlier: EarlierVersion, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await past?.fetch(earlier, of: reference, into: sink)
    }
}
