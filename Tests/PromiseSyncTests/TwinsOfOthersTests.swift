import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// A store of places that takes `a` and `A` for one, as a WebDAV server on a disk of another
/// system. What others renamed from one to the other stood here under both names, and whoever
/// removed one of them removed the file.
@Suite(.timeLimit(.minutes(2))) struct TwinsOfOthersTests {
    /// The root is listed: `readme`, which is here, and `folder` with `inner`, which is listed.
    private func withTree(
        _ body: (EngineFixture, _ file: ItemIdentifier, _ folder: ItemIdentifier) async throws
            -> Void
    ) async throws {
        var provider = PlaceProvider()
        provider.foldsNames = true
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        let file = await fixture.provider.put("readme", "text")
        let folder = await fixture.provider.put("folder", kind: .folder)
        await fixture.provider.put("inner", "deep", in: folder)
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("readme")).id)
            try await fixture.list(try #require(try fixture.node("folder")).id)
            try await body(fixture, file, folder)
        }
    }

    private func settle(_ fixture: EngineFixture) async throws {
        for _ in 0..<2 {
            fixture.engine.lookNow()
            let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
            let remainder = try fixture.engine.remainder()
            #expect(isQuiet, "\(remainder)")
        }
    }

    @Test func whatOthersRenamedStandsOnceAndIsTheSameFile() async throws {
        try await withTree { fixture, file, folder in
            let before = try #require(try fixture.entry("readme"))
            let folderBefore = try #require(try fixture.entry("folder"))
            await fixture.provider.move(file, name: "README")
            await fixture.provider.move(folder, name: "FOLDER")
            let isFollowed = try await fixture.eventually {
                try fixture.names() == ["FOLDER", "README"]
            }
            let here = try fixture.names()
            #expect(isFollowed, "\(here)")
            try await settle(fixture)
            #expect(try fixture.entry("README")?.node == before.node)
            #expect(try fixture.entry("README")?.identifier == before.identifier)
            #expect(try fixture.entry("FOLDER")?.node == folderBefore.node)
            #expect(try fixture.names(in: folderBefore.node) == ["inner"])
            #expect(await fixture.provider.countFetches() == 1, "nothing came again")
            #expect(await fixture.provider.names() == ["FOLDER/", "README=text"])
        }
    }

    @Test func anEditOfWhatOthersRenamedGoesToIt() async throws {
        try await withTree { fixture, file, _ in
            await fixture.provider.fail(ProviderError(.offline, "the network is gone"))
            await fixture.provider.move(file, name: "README")
            try fixture.edit("readme", "edited")
            await fixture.provider.fail(nil)
            let isSent = await fixture.eventually {
                await fixture.provider.names() == ["README=edited", "folder/"]
            }
            let there = await fixture.provider.names()
            #expect(isSent, "\(there)")
            let isFollowed = try await fixture.eventually {
                try fixture.names() == ["README", "folder"]
            }
            let here = try fixture.names()
            #expect(isFollowed, "\(here)")
            try await settle(fixture)
            #expect(try fixture.text("README") == "edited")
        }
    }

    @Test func aNameChangesItsCaseByWayOfAThirdOne() async throws {
        try await withTree { fixture, _, folder in
            let before = try #require(try fixture.entry("readme"))
            try fixture.rename("readme", to: "ReadMe")
            try fixture.rename("folder", to: "Folder")
            let isSent = await fixture.eventually {
                await fixture.provider.names() == ["Folder/", "ReadMe=text"]
            }
            let there = await fixture.provider.names()
            #expect(isSent, "\(there)")
            try await settle(fixture)
            #expect(try fixture.names() == ["Folder", "ReadMe"])
            #expect(try fixture.entry("ReadMe")?.node == before.node)
            #expect(await fixture.provider.names(in: folder) == ["inner=deep"])
        }
    }
}
