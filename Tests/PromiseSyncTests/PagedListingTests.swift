import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Folders that come in many pages: what is known after each, and what a listing that does not come to its end means.
@Suite(.timeLimit(.minutes(2))) struct PagedListingTests {
    private func run(
        itemCount: Int, pageCount: Int = 2, _ body: (MemoryProvider, PagedProvider, EngineFixture) async throws -> Void
    ) async throws {
        let memory = MemoryProvider()
        for number in 0..<itemCount { await memory.put("item\(1000 + number)", "text") }
        let paged = PagedProvider(memory: memory, pageCount: pageCount)
        let fixture = try EngineFixture(memory, mediator: paged)
        try await fixture.run { try await body(memory, paged, fixture) }
    }

    @Test func aReaderGoesOnWithEachPageAndTheOthersWaitForAll() async throws {
        try await run(itemCount: 6) { _, paged, fixture in
            // Both wait before a page comes: who asks for more after the first one waits for the second.
            paged.shared.state.withLock { $0.pagesMax = 0 }
            let (whole, more) = (Monitor<Bool?>(nil), Monitor<Bool?>(nil))
            fixture.engine.list(.root) { result in whole.update { $0 = (try? result.get()) != nil } }
            fixture.engine.listMore(of: .root) { result in more.update { $0 = (try? result.get()) != nil } }
            paged.shared.state.withLock { $0.pagesMax = 1 }
            #expect(await fixture.eventually { more.withLock { $0 } == true })
            #expect(try fixture.names().count == 2)
            #expect(whole.withLock { $0 } == nil)
            paged.shared.state.withLock { $0.pagesMax = .max }
            #expect(await fixture.eventually { whole.withLock { $0 } == true })
            #expect(try fixture.names().count == 6)
            // All is known: nobody has to wait any more.
            try await fixture.listMore()
        }
    }

    /// What is not on the pages that came is not taken for gone.
    @Test func aListingThatBreaksOffRemovesNothing() async throws {
        try await run(itemCount: 7) { memory, paged, fixture in
            try await fixture.list()
            paged.shared.state.withLock { $0.failsAfter = 1 }
            await memory.put("item0", "another")
            #expect(await fixture.eventually { paged.shared.state.withLock { $0.failureCount } > 0 })
            #expect(try fixture.names().count >= 7)
            #expect(paged.shared.state.withLock { $0.questionCount } == 0)
            paged.shared.state.withLock { $0.failsAfter = nil }
            fixture.engine.lookNow()
            #expect(await fixture.eventually { (try? fixture.names().count) == 8 })
        }
    }

    /// A first listing that breaks off is begun anew, and what had come is there once.
    @Test func aFirstListingThatBreaksOffIsMadeAgain() async throws {
        try await run(itemCount: 7) { _, paged, fixture in
            paged.shared.state.withLock { $0.failsAfter = 1 }
            await #expect(throws: Failure.self) { try await fixture.list() }
            let root = try fixture.index.read { transaction throws(Failure) in try transaction.node(.root) }
            #expect(root?.isPopulated == false)
            paged.shared.state.withLock { $0.failsAfter = nil }
            try await fixture.list()
            #expect(try fixture.names().count == 7)
        }
    }

    /// A first listing is compared with nothing: the name stayed as a ghost.
    @Test func whatAListingThatBrokeOffShowedGoesWhenItIsGone() async throws {
        try await run(itemCount: 7) { memory, paged, fixture in
            paged.shared.state.withLock { $0.failsAfter = 1 }
            await #expect(throws: Failure.self) { try await fixture.list() }
            let gone = try #require(try fixture.names().first)
            await memory.remove(try #require(try fixture.entry(gone)?.identifier))
            paged.shared.state.withLock { $0.failsAfter = nil }
            try await fixture.list()
            #expect(await fixture.eventually { (try? fixture.names().count) == 6 })
            #expect(try fixture.entry(gone) == nil)
        }
    }

    /// More than is compared at once, and items at the ends of parts.
    @Test func whatALargeListingDoesNotShowIsFoundMissing() async throws {
        try await run(itemCount: 700, pageCount: 100) { memory, _, fixture in
            try await fixture.list()
            let gone = ["item1000", "item1255", "item1256", "item1511", "item1699"]
            for name in gone { await memory.remove(try #require(try fixture.entry(name)?.identifier)) }
            #expect(await fixture.eventually { (try? fixture.names().count) == 695 })
            for name in gone { #expect(try fixture.entry(name) == nil) }
            #expect(await fixture.eventually { (try? fixture.isQuiet()) == true })
            #expect(await memory.names().count == 695)
        }
    }
}

/// Names the same pages again and again, or new ones without anything on them, or with what was on others.
private struct EndlessProvider: ForwardingProvider {
    let memory = MemoryProvider()
    let pageCount: Int
    var items: [Item] = []

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        let number = page.flatMap { Int($0.rawValue) } ?? 0
        return ItemPage(items: items, next: PageToken(rawValue: "\((number + 1) % pageCount)"))
    }
}

struct EndlessListingTests {
    @Test(.timeLimit(.minutes(5)), arguments: [1, 2, 7, Int.max])
    func aListingThatDoesNotEndIsEnded(pageCount: Int) async throws {
        let provider = EndlessProvider(pageCount: pageCount)
        let root = ItemReference(identifier: ItemIdentifier("root"), path: [])
        await #expect { _ = try await provider.enumerateAllItems(in: root) { _ in } } throws: {
            ($0 as? ProviderError)?.code == .retry
        }
    }

    /// Each page had a name of its own, and the same item: it was listed for ever.
    @Test(.timeLimit(.minutes(5))) func newPagesWithTheSameItemsAreEnded() async throws {
        let item = Item(
            identifier: ItemIdentifier("a"), parent: ItemIdentifier("root"), name: FileName("a")!,
            kind: .file, size: 0, metadata: MemoryProvider.metadata(0o644),
            version: ContentVersion("1"))
        let provider = EndlessProvider(pageCount: Int.max, items: [item])
        let root = ItemReference(identifier: ItemIdentifier("root"), path: [])
        await #expect { _ = try await provider.enumerateAllItems(in: root) { _ in } } throws: {
            ($0 as? ProviderError)?.code == .retry
        }
    }
}

extension EngineFixture {
    func listMore(_ folder: NodeID = .root) async throws {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            engine.listMore(of: folder) { continuation.resume(returning: $0) }
        }
        try result.get()
    }
}

/// A provider in memory whose listings come in pages, as many as a test lets come.
private struct PagedProvider: ForwardingProvider {
    struct State {
        var pagesMax = Int.max
        /// Pages from this one on fail.
        var failsAfter: Int?
        var failureCount = 0
        /// How often single items were asked for.
        var questionCount = 0
    }

    final class Shared: Sendable {
        let state = Mutex(State())
    }

    let pageCount: Int
    let memory: MemoryProvider
    let shared = Shared()
    init(memory: MemoryProvider, pageCount: Int) {
        self.memory = memory
        self.pageCount = pageCount
    }

    func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        shared.state.withLock { $0.questionCount += 1 }
        return try await memory.item(for: reference)
    }

    func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        let number = page.flatMap { Int($0.rawValue) } ?? 0
        while shared.state.withLock({ number >= $0.pagesMax }) {
            do { try await Task.sleep(for: .milliseconds(5)) } catch { throw ProviderError(.cancelled, "nobody waits any more") }
        }
        let fails = shared.state.withLock { state in
            guard let limit = state.failsAfter, number >= limit else { return false }
            state.failureCount += 1
            return true
        }
        if fails { throw ProviderError(.retry, "the answer broke off") }
        let items = try await memory.enumerateItems(in: folder, page: nil).items.sorted { $0.name < $1.name }
        let start = min(number * pageCount, items.count)
        let end = min(start + pageCount, items.count)
        return ItemPage(
            items: Array(items[start..<end]), next: end < items.count ? PageToken(rawValue: "\(number + 1)") : nil)
    }
}
