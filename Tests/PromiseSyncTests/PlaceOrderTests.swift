import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// On a store that knows places only, what leaves a place and what comes there are never taken for one another.
@Suite(.timeLimit(.minutes(2))) struct PlaceOrderTests {
    /// A fixture whose root is listed and whose file `folder/file` is known here, and its content too if `isHere`.
    private func withFile(
        isHere: Bool = true, gate: Gate? = nil, _ body: (EngineFixture, _ folder: NodeID) async throws -> Void
    ) async throws {
        let provider = PlaceProvider(gate: gate)
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        let folder = await fixture.provider.put("folder", kind: .folder)
        await fixture.provider.put("file", "the old", in: folder)
        try await fixture.run {
            let node = try await fixture.listed("folder").id
            try await fixture.list(node)
            if isHere { try await fixture.hydrate(try #require(try fixture.node("file", in: node)).id) }
            try await body(fixture, node)
        }
    }

    private func settle(_ fixture: EngineFixture) async throws {
        for _ in 0..<2 {
            let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
            let remainder = try fixture.engine.remainder()
            #expect(isQuiet, "\(remainder)")
            fixture.engine.lookNow()
        }
    }

    private func text(_ fixture: EngineFixture, _ path: String...) async -> String? {
        await fixture.provider.item(at: path.map { FileName($0)! }).map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    /// The creation is due before the move, and after it.
    @Test(arguments: [Duration.milliseconds(400), .zero], ["the new one", "the old"])
    func aNewFileUnderTheNameOfOneThatGoesElsewhereComesAfterIt(delay: Duration, content: String) async throws {
        try await withFile { fixture, folder in
            let before = try #require(try fixture.entry("file", in: folder))
            try fixture.rename("file", in: folder, to: "moved", delay: delay)
            try fixture.create("file", content, in: folder)
            try await settle(fixture)
            #expect(await text(fixture, "moved") == "the old")
            #expect(await text(fixture, "folder", "file") == content)
            #expect(try fixture.entry("moved")?.identifier == before.identifier)
            #expect(try fixture.entry("file", in: folder)?.identifier != before.identifier)
            #expect(await fixture.provider.createCount == 1, "the creation was sent once")
        }
    }

    @Test func aFileGoesIntoANewFolderOfItsOwnName() async throws {
        try await withFile { fixture, folder in
            let before = try #require(try fixture.entry("file", in: folder))
            try fixture.rename("file", in: folder, to: "aside", delay: .seconds(1))
            let new = try fixture.create("file", "", kind: .folder, in: folder)
            try fixture.rename("aside", to: "inner", into: new)
            try await settle(fixture)
            #expect(await text(fixture, "folder", "file", "inner") == "the old")
            #expect(try fixture.entry("inner", in: new)?.identifier == before.identifier)
            #expect(await fixture.provider.names() == ["folder/"])
        }
    }

    /// Its old folder goes at the provider, with everything in it, before the provider is told of the move.
    @Test(arguments: [true, false]) func aFileMovedOutOfAFolderThatGoesIsMadeAgainFromWhatIsHere(isHere: Bool) async throws {
        try await withFile(isHere: isHere) { fixture, folder in
            // Looks begun at the start would find the file itself gone.
            try await settle(fixture)
            let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
            #expect(isQuiet)
            try fixture.rename("file", in: folder, to: "moved", delay: .seconds(2))
            let stored = try #require(await fixture.provider.item(at: [FileName("folder")!]))
            await fixture.provider.remove(stored.item.identifier)
            let isGone = try await fixture.eventually { try fixture.entry("folder") == nil }
            #expect(isGone)
            try await settle(fixture)
            #expect(await fixture.provider.names() == (isHere ? ["moved=the old"] : []))
            #expect(try fixture.names() == (isHere ? ["moved"] : []))
        }
    }

    /// The provider's answer is about a path that led elsewhere by then.
    @Test func whatIsInAFolderThatMovesWhileItIsAskedForIsNotGone() async throws {
        let gate = Gate()
        try await withFile(gate: gate) { fixture, folder in
            let before = try #require(try fixture.entry("file", in: folder))
            fixture.engine.lookAgain(at: before.node)
            try await Task.sleep(for: .milliseconds(20))
            try fixture.rename("folder", to: "elsewhere")
            let isMoved = await fixture.eventually { await text(fixture, "elsewhere", "file") == "the old" }
            #expect(isMoved)
            gate.open()
            try await settle(fixture)
            let after = try fixture.entry("file", in: folder)
            #expect(after?.id == before.id && after?.identifier == before.identifier)
            #expect(try fixture.text("file", in: folder) == "the old")
        }
    }
}
