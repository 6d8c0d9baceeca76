import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Testing

/// Providers without a feed are asked again and again for all that is known.
@Suite(.timeLimit(.minutes(2))) struct PollTests {
    /// Listing all folders takes longer than the poll interval: between two rounds there is a moment in which nothing is looked
    /// at, and what others do is seen.
    @Test func aLookThatTakesLongerThanThePollIntervalEnds() async throws {
        let memory = MemoryProvider(MemoryProvider.capabilities.subtracting([.changeFeed, .changePush]))
        for number in 0..<12 { await memory.put("folder\(number)", kind: .folder) }
        let fixture = try EngineFixture(memory, mediator: SlowProvider(memory: memory), pollInterval: .milliseconds(200))
        try await fixture.run {
            try await fixture.list()
            for number in 0..<12 {
                let folder = try #require(try fixture.node("folder\(number)"))
                try await fixture.list(folder.id)
            }
            for round in 0..<2 {
                fixture.engine.lookNow()
                #expect(await fixture.eventually { (try? fixture.isQuiet()) == true })
                await memory.put("new\(round)", "text")
                #expect(await fixture.eventually { (try? fixture.node("new\(round)")) != nil })
            }
        }
    }
}

/// Each listing takes a while, and every folder counts as changed.
private struct SlowProvider: Provider {
    let memory: MemoryProvider

    var name: String { "slow:" }
    var capabilities: Capabilities { memory.capabilities }
    func connect() async throws(ProviderError) { try await memory.connect() }
    func root() async throws(ProviderError) -> Item { try await memory.root() }
    func item(for reference: ItemReference) async throws(ProviderError) -> Item { try await memory.item(for: reference) }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try? await Task.sleep(for: .milliseconds(100))
        return try await memory.enumerateItems(in: folder, page: page)
    }

    func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        let root = MemoryProvider.rootIdentifier
        let page = try await memory.enumerateItems(in: ItemReference(identifier: root, path: []), page: nil)
        let folders = page.items.filter { $0.kind == .folder }.map(\.identifier)
        return ChangePage(foldersToList: Set(folders + [root]), anchor: anchor)
    }

    func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "there is no feed")
    }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await memory.fetchContents(of: reference, version: version, range: range, into: sink)
    }

    func create(_ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?) async throws(ProviderError) -> Item {
        try await memory.create(item, in: folder, contents: contents)
    }

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await memory.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
    }

    func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await memory.delete(reference, baseVersion: baseVersion)
    }
}
