import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// A provider may call a file's content something else each time it is asked. It was asked a thousand times a second, for
/// as long as somebody waited.
@Suite(.timeLimit(.minutes(2))) struct UnsteadyVersionTests {
    private func fixture(_ restless: Restless) async throws -> EngineFixture {
        await restless.memory.put("a", "hello")
        return try EngineFixture(restless.memory, mediator: restless)
    }

    @Test func whoReadsIsToldAfterAFewTriesWithPauses() async throws {
        let restless = Restless(steadyAfter: .max)
        let fixture = try await fixture(restless)
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let failure = await #expect(throws: Failure.self) { try await fixture.hydrate(node) }
            #expect(failure?.code == .inputOutput && failure?.message.contains("another version each time") == true)
            #expect(fixture.engine.hydrator.problem(of: node)?.message == failure?.message)
            #expect(restless.counts.withLock { $0.fetches } <= 16)
            let again = await #expect(throws: Failure.self) { try await fixture.hydrate(node) }
            #expect(again?.message == failure?.message, "the next reader begins anew")
        }
    }

    @Test func whatComesToRestIsRead() async throws {
        let restless = Restless(steadyAfter: 4)
        let fixture = try await fixture(restless)
        try await fixture.run {
            let node = try await fixture.listed("a").id
            try await fixture.hydrate(node)
            #expect(try fixture.text("a") == "hello")
        }
    }
}

/// Each question for its file is answered with another version, and none of them can be fetched, until it was asked for so often.
private final class Restless: ForwardingProvider {
    let memory = MemoryProvider()
    let counts = Mutex((looks: 0, fetches: 0))
    private let steadyAfter: Int

    init(steadyAfter: Int) { self.steadyAfter = steadyAfter }

    private func shown(_ item: Item) -> Item {
        guard item.kind == .file else { return item }
        var item = item
        let number = counts.withLock { counts in
            if counts.fetches < steadyAfter { counts.looks += 1 }
            return counts.looks
        }
        item.version = ContentVersion("v\(number)")
        return item
    }

    func item(for reference: ItemReference) async throws(ProviderError) -> Item { shown(try await memory.item(for: reference)) }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        var result = try await memory.enumerateItems(in: folder, page: page)
        result.items = result.items.map(shown)
        return result
    }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        let isSteady = counts.withLock { counts in
            counts.fetches += 1
            return counts.fetches > steadyAfter && version.rawValue == "v\(counts.looks)"
        }
        guard isSteady else { throw ProviderError(.stale, "'/a' has another version") }
        let real = try await memory.item(for: reference).version
        try await memory.fetchContents(of: reference, version: real, range: range, into: sink)
    }
}
