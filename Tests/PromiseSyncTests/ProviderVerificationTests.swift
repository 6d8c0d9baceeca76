import PromiseCore
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// A check of what is known against a provider that does not end.
@Suite struct ProviderVerificationTests {
    /// Gives one page again and again, or none at all.
    private struct Endless: ForwardingProvider {
        let memory: MemoryProvider
        let answers: Bool

        func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
            guard answers else {
                try? await Task.sleep(for: .seconds(600))
                throw ProviderError(.cancelled, "nobody waits any more")
            }
            var answer = try await memory.enumerateItems(in: folder, page: nil)
            answer.next = PageToken(rawValue: "again")
            return answer
        }
    }

    /// It went on for good, with more and more items in memory, or waited for good.
    @Test(.timeLimit(.minutes(2)), arguments: [true, false])
    func aProviderThatDoesNotEndEndsTheCheck(answers: Bool) async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "text")
        try await fixture.run {
            try await fixture.list()
            let verification = ProviderVerification(
                index: fixture.index, content: fixture.content,
                provider: Endless(memory: fixture.provider, answers: answers),
                rootIdentifier: MemoryProvider.rootIdentifier, patience: .seconds(2))
            let failure = await #expect(throws: Failure.self) { _ = try await verification.compareItems() }
            let sentence = answers ? "the listing does not end" : "did not answer"
            #expect(failure?.message.contains(sentence) == true, "\(String(describing: failure))")
        }
    }
}
