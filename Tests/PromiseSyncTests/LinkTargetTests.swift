import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// A link that was led elsewhere on two machines at once.
@Suite(.timeLimit(.minutes(2))) struct LinkTargetTests {
    private func apart(
        here: String, there: String, _ check: (EngineFixture, ItemIdentifier) async throws -> Void
    ) async throws {
        let fixture = try EngineFixture()
        let provider = fixture.provider
        let item = await provider.put("link", kind: .link)
        await provider.change(item, target: "old")
        try await fixture.run {
            _ = try await fixture.listed("link")
            let gate = Gate()
            await provider.holdListings(at: gate)
            await provider.change(item, target: there)
            try lead("link", to: here, fixture)
            #expect(try await fixture.eventually {
                try fixture.index.read { transaction throws(Failure) in
                    try transaction.allPending(limit: 1).allSatisfy { $0.attempts > 0 }
                }
            })
            await provider.holdListings(at: nil)
            gate.open()
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            try await check(fixture, item)
        }
    }

    /// As a program that makes it anew.
    private func lead(_ name: String, to target: String, _ fixture: EngineFixture) throws {
        try fixture.index.write { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: .root, named: FileName(name)!),
                var node = try transaction.node(entry.node)
            else { return }
            node.target = Array(target.utf8)
            node.edits += 1
            try transaction.update(node)
            let now = SystemClock().now()
            try transaction.setPending(Pending(subject: .entry(entry.id), since: now, due: now))
        }
        fixture.engine.notePending()
    }

    /// It stood there twice.
    @Test func theSameTargetIsNoConflict() async throws {
        try await apart(here: "new", there: "new") { fixture, item in
            let names = try fixture.names()
            let link = try #require(try fixture.node("link"))
            let stored = try #require(await fixture.provider.items[item]).item
            #expect(names == ["link"])
            #expect(link.target == Array("new".utf8) && link.version == stored.version)
            #expect(await fixture.provider.createCount == 0)
        }
    }

    @Test func anotherTargetIsOne() async throws {
        try await apart(here: "new", there: "other") { fixture, item in
            let names = try fixture.names()
            let link = try #require(try fixture.node("link"))
            let stored = try #require(await fixture.provider.items[item]).item
            #expect(names.count == 2)
            #expect(link.target == Array("other".utf8) && stored.target == link.target)
        }
    }
}
