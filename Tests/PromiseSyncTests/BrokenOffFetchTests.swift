import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Synchronization
import Testing

/// A server, or what is between, ends every answer early.
@Suite(.timeLimit(.minutes(2))) struct BrokenOffFetchTests {
    private static let cut = 200_000
    private let text = String(repeating: "0123456789", count: 60_000)

    private func cutting() async throws -> (EngineFixture, CuttingProvider) {
        let cutting = CuttingProvider(memory: MemoryProvider(), after: BrokenOffFetchTests.cut)
        let fixture = try EngineFixture(cutting.memory, mediator: cutting)
        await fixture.provider.put("a", text)
        return (fixture, cutting)
    }

    /// Each attempt began at the first byte, and none came past the cut.
    @Test func aFetchThatIsCutOffGoesOnWhereItWasCut() async throws {
        let (fixture, cutting) = try await cutting()
        try await fixture.run {
            try await fixture.hydrate(try await fixture.listed("a").id)
            #expect(try fixture.text("a") == text)
            #expect(cutting.begun.withLock { $0 } == [0, 200_000, 400_000])
        }
    }

    @Test func whatWasCutOffIsNotMixedWithAnotherVersion() async throws {
        let (fixture, cutting) = try await cutting()
        let other = String(repeating: "abcdefghij", count: 60_000)
        cutting.onSecond.withLock { $0 = { await fixture.provider.put("a", other) } }
        try await fixture.run {
            let node = try await fixture.listed("a").id
            // The version that is cut off is gone, and whoever waits for it may be told so.
            #expect(await fixture.eventually { (try? await fixture.hydrate(node)) != nil })
            #expect(try fixture.text("a") == other)
        }
    }
}

/// Ends each answer after so many bytes.
private final class CuttingProvider: ForwardingProvider {
    let memory: MemoryProvider
    private let cut: Int
    /// Where each fetch began.
    let begun = Mutex<[UInt64]>([])
    let onSecond = Mutex<(@Sendable () async -> Void)?>(nil)

    init(memory: MemoryProvider, after cut: Int) { (self.memory, self.cut) = (memory, cut) }

    func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?,
        into sink: any ContentSink
    ) async throws(ProviderError) {
        let whole = ByteRange(0, try await memory.item(for: reference).size)
        let wanted = range ?? whole
        let count = begun.withLock { begun in
            begun.append(wanted.lower)
            return begun.count
        }
        if count == 2 { await onSecond.withLock { $0 }?() }
        let part = ByteRange(wanted.lower, min(wanted.upper, wanted.lower + UInt64(cut)))
        try await memory.fetchContents(of: reference, version: version, range: part, into: sink)
        if part.upper < wanted.upper { throw ProviderError(.retry, "the connection was reset") }
    }
}
