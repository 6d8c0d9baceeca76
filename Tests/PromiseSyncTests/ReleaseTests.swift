import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Synchronization
import Testing

/// Notes what it is told of, and fails each time.
private final class Listener: ForwardingProvider {
    let memory: MemoryProvider
    let isListening: Bool
    let heard = Mutex<[String]>([])

    init(_ memory: MemoryProvider, isListening: Bool) {
        (self.memory, self.isListening) = (memory, isListening)
    }

    var capabilities: Capabilities { memory.capabilities.union(isListening ? .release : []) }

    var names: [String] { heard.withLock { $0 } }

    func contentsReleased(
        of reference: ItemReference, version: ContentVersion
    ) async throws(ProviderError) {
        heard.withLock { $0.append(reference.path.last?.display ?? "") }
        throw ProviderError(.offline, "nobody is there")
    }
}

@Suite struct ReleaseTests {
    @Test(arguments: [true, false])
    func aProviderHearsOfContentThatIsNotKeptHereIfItWantsTo(isListening: Bool) async throws {
        let memory = MemoryProvider()
        let listener = Listener(memory, isListening: isListening)
        let fixture = try EngineFixture(memory, mediator: listener)
        for name in ["a", "b"] { await memory.put(name, "hello") }
        try await fixture.run {
            for name in ["a", "b"] {
                let node = try await fixture.listed(name)
                try await fixture.hydrate(node.id)
                let outcome = try fixture.engine.evict(node.id)
                guard case .evicted = outcome else { throw Failure(.busy, "the file was kept") }
                // Nobody is told of what was not here.
                _ = try fixture.engine.evict(node.id)
            }
            let expected = isListening ? ["a", "b"] : []
            #expect(await fixture.eventually { listener.names == expected })
        }
    }
}
