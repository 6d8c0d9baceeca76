import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Synchronization
import Testing

/// Nobody waits any more for what is being fetched.
@Suite(.timeLimit(.minutes(2))) struct AbandonedFetchTests {
    /// On a line that takes longer than a program waits it was begun anew for each, and never came.
    @Test func aSmallFileThatHasBegunToComeComesAlthoughNobodyWaits() async throws {
        let slow = SlowProvider(memory: MemoryProvider())
        let fixture = try EngineFixture(slow.memory, mediator: slow)
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            let waiter = try #require(hydrator.hydrate(node, for: "cat") { _ in })
            #expect(await fixture.eventually { hydrator.progress(of: node)?.present == 1 })
            hydrator.detach(waiter, from: node)
            slow.mayGoOn.store(true, ordering: .relaxed)
            #expect(await fixture.eventually { (try? fixture.node("a"))??.content == .whole })
            #expect(try fixture.text("a") == "hello")
        }
    }

    /// Whoever comes next would wait for a call that brings nothing any more.
    @Test func aSmallFileThatComesNoFurtherIsFetchedAnew() async throws {
        let slow = SlowProvider(memory: MemoryProvider())
        let fixture = try EngineFixture(slow.memory, mediator: slow)
        await fixture.provider.put("a", "hello")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            let hydrator = fixture.engine.hydrator
            for _ in 0..<2 {
                let waiter = try #require(hydrator.hydrate(node, for: "cat") { _ in })
                #expect(await fixture.eventually { hydrator.progress(of: node)?.present == 1 })
                hydrator.detach(waiter, from: node)
            }
            try await fixture.hydrate(node)
            #expect(try fixture.text("a") == "hello")
        }
    }
}

/// The first fetch brings one byte, and no more before it `mayGoOn` or is cancelled.
private final class SlowProvider: ForwardingProvider {
    let memory: MemoryProvider
    let mayGoOn = Atomic(false)
    private let isBegun = Atomic(false)

    init(memory: MemoryProvider) { self.memory = memory }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        if !isBegun.exchange(true, ordering: .relaxed) {
            try await memory.fetchContents(of: reference, version: version, range: ByteRange(0, 1), into: sink)
            while !mayGoOn.load(ordering: .relaxed), !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(5))
            }
            if Task.isCancelled { throw ProviderError(.cancelled, "the call was cancelled") }
        }
        try await memory.fetchContents(of: reference, version: version, range: range, into: sink)
    }
}
