import PromiseCore
import PromiseFilesystem
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// A file's second name that the provider was not told of has its content from the first one's item only.
@Suite struct SecondNameTests {
    /// `body` begins with a file `a` that is at the provider, and here or not.
    private func withFile(isLocal: Bool, _ body: (SimulatedDomain) async throws -> Void) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["a"])
            try await domain.expectBothSidesTheSame("before")
            if !isLocal { try await evict(domain) }
            try await body(domain)
        }
    }

    private func evict(_ domain: SimulatedDomain) async throws {
        let outcome = try domain.engine.evict(try await domain.node(at: ["a"]).node)
        guard case .evicted = outcome else {
            Issue.record("'a' stays here: \(outcome)")
            return
        }
    }

    /// The new file went over the only copy of what the second name stands for.
    @Test func aFileSavedOverAPlaceholderLeavesItsSecondNameTheContent() async throws {
        try await withFile(isLocal: false) { domain in
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await domain.addName(["b"], to: ["a"])
            try await domain.write("second", to: ["new"])
            try await domain.rename(["new"], to: ["a"])
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["a=second", "b=first"])
        }
    }

    /// It stayed on this machine, where nothing of its content was.
    @Test func aBackupNameOfAPlaceholderIsSentAsOfARename() async throws {
        try await withFile(isLocal: false) { domain in
            try await domain.addName(["a~"], to: ["a"])
            try await domain.remove(["a"])
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["a~=first"])
        }
    }

    /// It was evicted, as the first name's item had it; others removed that, and the file was lost.
    @Test func contentThatANameWasNotSentWithStays() async throws {
        try await withFile(isLocal: true) { domain in
            let first = try #require(await domain.provider.items.values.first { $0.item.name.display == "a" })
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await domain.addName(["b"], to: ["a"])
            let outcome = try domain.engine.evict(try await domain.node(at: ["a"]).node)
            guard case .kept(.unsent) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            await domain.provider.remove(first.item.identifier)
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["b=first"])
        }
    }

    @Test func contentThatANameOnThisMachineHasStays() async throws {
        try await withFile(isLocal: true) { domain in
            try await domain.addName(["a~"], to: ["a"])
            let outcome = try domain.engine.evict(try await domain.node(at: ["a"]).node)
            guard case .kept(.excluded) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            try await domain.remove(["a"])
            while try !domain.isQuiet() { try await Task.sleep(for: .milliseconds(5)) }
            #expect(try await domain.texts(at: ["a~"]) == ["first"])
            #expect(await domain.provider.tree() == [])
        }
    }
}
