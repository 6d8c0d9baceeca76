import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Synchronization
import Testing

/// Takes no end of time over what is made there, until that is given up once.
private final class SlowOnce: ForwardingProvider {
    let memory: MemoryProvider
    private let hasBeenGivenUp = Mutex(false)

    init(_ memory: MemoryProvider) { self.memory = memory }

    var wasGivenUp: Bool { hasBeenGivenUp.withLock { $0 } }

    func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        while !wasGivenUp {
            try? await Task.sleep(for: .seconds(1))
            guard Task.isCancelled else { continue }
            hasBeenGivenUp.withLock { $0 = true }
            throw ProviderError(.cancelled, "the call was cancelled")
        }
        return try await memory.create(item, in: folder, contents: contents)
    }
}

@Suite struct PausingTests {
    private func setPaused(_ isPaused: Bool, _ engine: SyncEngine) async throws {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            engine.setPaused(isPaused) { continuation.resume(returning: $0) }
        }
        try result.get()
        #expect((engine.pausedSince != nil) == isPaused)
    }

    @Test func anUploadThatTakesLongEndsAtAPauseAndBeginsAgainAfterIt() async throws {
        let memory = MemoryProvider()
        let provider = SlowOnce(memory)
        let fixture = try EngineFixture(memory, mediator: provider)
        let text = String(repeating: "x", count: 2 << 20)
        try await fixture.run {
            try await fixture.list()
            _ = try fixture.create("large", text)
            #expect(await fixture.eventually { fixture.engine.uploadingCount == 1 })
            try await setPaused(true, fixture.engine)
            #expect(await fixture.eventually { provider.wasGivenUp })
            #expect(await fixture.eventually { fixture.engine.uploadingCount == 0 })
            #expect(await memory.names() == [])
            try await setPaused(false, fixture.engine)
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(await memory.names() == ["large=" + text])
        }
    }

    @Test func aPauseIsKeptForTheNextEngine() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await setPaused(true, fixture.engine)
            let kept = try fixture.index.read { transaction throws(Failure) in
                try transaction.setting("paused.since")
            }
            #expect(kept != nil)
            try await setPaused(false, fixture.engine)
            let left = try fixture.index.read { transaction throws(Failure) in
                try transaction.setting("paused.since")
            }
            #expect(left == nil)
        }
    }
}
