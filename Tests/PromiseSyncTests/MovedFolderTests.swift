import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// Others move a folder in a store that knows places only, and what is done in it here is not told
/// yet.
@Suite(.timeLimit(.minutes(2))) struct MovedFolderTests {
    private struct Tree {
        var folder: ItemIdentifier
        var inner: ItemIdentifier
        var folderNode = NodeID.root
        var innerNode = NodeID.root
    }

    /// `folder` with `doc`, `still` and `inner/deep`. Nothing of what others do is heard before the
    /// provider is told of something.
    private func withFolder(
        guesses: Bool = false, _ body: (EngineFixture, Tree) async throws -> Void
    ) async throws {
        let provider = PlaceProvider(guesses: guesses, isPolled: true)
        let fixture = try EngineFixture(
            provider.memory, mediator: provider, pollInterval: .seconds(600))
        let memory = fixture.provider
        let folder = await memory.put("folder", kind: .folder)
        await memory.put("doc", "text", in: folder)
        await memory.put("still", "still", in: folder)
        var tree = Tree(folder: folder, inner: await memory.put("inner", kind: .folder, in: folder))
        await memory.put("deep", "deep text", in: tree.inner)
        try await fixture.run {
            try await fixture.list()
            tree.folderNode = try #require(try fixture.node("folder")).id
            try await fixture.list(tree.folderNode)
            tree.innerNode = try #require(try fixture.node("inner", in: tree.folderNode)).id
            try await fixture.list(tree.innerNode)
            try await fixture.hydrate(try #require(try fixture.node("doc", in: tree.folderNode)).id)
            try await fixture.hydrate(try #require(try fixture.node("deep", in: tree.innerNode)).id)
            try await settle(fixture)
            try await body(fixture, tree)
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

    private func path(_ names: String...) -> [FileName] { names.map { FileName($0)! } }

    @Test func whatWasEditedHereIsOnlyWhereOthersMovedTheFolder() async throws {
        try await withFolder { fixture, tree in
            let before = try #require(try fixture.entry("doc", in: tree.folderNode))
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.edit("doc", "edited", in: tree.folderNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(
                await fixture.provider.names(in: tree.folder)
                    == ["doc=edited", "inner/", "still=still"])
            #expect(try fixture.names() == ["moved"])
            #expect(try fixture.node("moved")?.id == tree.folderNode)
            #expect(try fixture.entry("doc", in: tree.folderNode)?.node == before.node)
            #expect(await fixture.provider.countFetches() == 2, "nothing came again")
        }
    }

    @Test func whatWasEditedDeepInItGoesAlong() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.edit("deep", "edited", in: tree.innerNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(await fixture.provider.names(in: tree.inner) == ["deep=edited"])
            #expect(try fixture.node("inner", in: tree.folderNode)?.id == tree.innerNode)
        }
    }

    @Test func whatWasMadeInItGoesAlong() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.create("fresh", "new", in: tree.folderNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(
                await fixture.provider.names(in: tree.folder)
                    == ["doc=text", "fresh=new", "inner/", "still=still"])
        }
    }

    @Test func whatWasRemovedHereDoesNotComeBackElsewhere() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.remove("doc", in: tree.folderNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(await fixture.provider.names(in: tree.folder) == ["inner/", "still=still"])
            #expect(try fixture.names(in: tree.folderNode) == ["inner", "still"])
        }
    }

    /// Somebody's own folder, which is like it but for one thing, is left alone.
    @Test(arguments: ["one more", "one less", "another version"])
    func whatIsLikeItIsNotIt(difference: String) async throws {
        try await withFolder { fixture, tree in
            // The same items, which a store may show at two places.
            await fixture.provider.move(tree.folder, name: "other")
            switch difference {
            case "one more": await fixture.provider.put("more", "more", in: tree.folder)
            case "one less":
                let still = await fixture.provider.item(at: path("other", "still"))
                await fixture.provider.remove(try #require(still).item.identifier)
            default:
                let still = await fixture.provider.item(at: path("other", "still"))
                await fixture.provider.change(try #require(still).item.identifier, text: "others'")
            }
            try fixture.edit("doc", "edited", in: tree.folderNode)
            try fixture.remove("deep", in: tree.innerNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["folder/", "other/"])
            #expect(await fixture.provider.names(in: tree.folder).contains("doc=text"))
            #expect(await fixture.provider.names(in: tree.inner) == ["deep=deep text"])
            let edited = await fixture.provider.item(at: path("folder", "doc"))
            #expect(edited?.bytes == Array("edited".utf8))
        }
    }

    @Test func whatOthersRemovedWithAllThatWasInItIsMadeAnewForAnEdit() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.remove(tree.folder)
            try fixture.edit("doc", "edited", in: tree.folderNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["folder/"])
            #expect(try fixture.names(in: tree.folderNode) == ["doc"])
        }
    }

    @Test func whatOthersRemovedFromAFolderThatIsThereIsGone() async throws {
        try await withFolder { fixture, tree in
            let doc = await fixture.provider.item(at: path("folder", "doc"))
            await fixture.provider.remove(try #require(doc).item.identifier)
            try fixture.edit("doc", "edited", in: tree.folderNode)
            try await settle(fixture)
            #expect(
                await fixture.provider.names(in: tree.folder)
                    == ["doc=edited", "inner/", "still=still"])
        }
    }

    // MARK: All of it is removed here

    private func removeAll(_ fixture: EngineFixture, _ tree: Tree) throws {
        for name in ["doc", "still"] { try fixture.remove(name, in: tree.folderNode) }
        try fixture.remove("deep", in: tree.innerNode)
        try fixture.remove("inner", in: tree.folderNode)
        try fixture.remove("folder")
    }

    @Test func aTreeThatWasRemovedHereDoesNotComeBackWhereOthersMovedIt() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.move(tree.folder, name: "moved")
            try removeAll(fixture, tree)
            try await settle(fixture)
            #expect(await fixture.provider.names() == [])
            #expect(try fixture.names() == [])
        }
    }

    @Test func whatIsLeftOfATreeIsRemovedWhereOthersMovedIt() async throws {
        try await withFolder { fixture, tree in
            try fixture.remove("doc", in: tree.folderNode)
            try await settle(fixture)
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.remove("still", in: tree.folderNode)
            try fixture.remove("deep", in: tree.innerNode)
            try fixture.remove("inner", in: tree.folderNode)
            try fixture.remove("folder")
            try await settle(fixture)
            #expect(await fixture.provider.names() == [])
            #expect(try fixture.names() == [])
        }
    }

    @Test func aTreeThatWasRemovedHereDoesNotComeBackWhereOthersMovedTheFolderAbove() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.move(tree.folder, name: "moved")
            try fixture.remove("deep", in: tree.innerNode)
            try fixture.remove("inner", in: tree.folderNode)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(
                await fixture.provider.names(in: tree.folder) == ["doc=text", "still=still"])
            #expect(try fixture.names(in: tree.folderNode) == ["doc", "still"])
        }
    }

    /// Others have done more with it than to move it, or it is another one: it stays, and is shown.
    @Test(arguments: ["edited", "more", "less", "deeper", "another time"], [false, true])
    func whatOthersMovedAndChangedStays(difference: String, guesses: Bool) async throws {
        try await withFolder(guesses: guesses) { fixture, tree in
            let still = await fixture.provider.item(at: path("folder", "still"))
            let item = try #require(still).item.identifier
            await fixture.provider.move(tree.folder, name: "moved")
            var expected = ["doc=text", "inner/", "still=still"]
            switch difference {
            case "edited":
                await fixture.provider.change(item, text: "others'")
                expected = ["doc=text", "inner/", "still=others'"]
            case "more":
                await fixture.provider.put("more", "more", in: tree.folder)
                expected.insert("more=more", at: 2)
            case "less":
                await fixture.provider.remove(item)
                expected.removeLast()
            case "deeper": await fixture.provider.put("more", "more", in: tree.inner)
            // As of a copy that has the same version, in a store that makes them of contents.
            default: await fixture.provider.change(item, time: 77)
            }
            try removeAll(fixture, tree)
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["moved/"])
            #expect(await fixture.provider.names(in: tree.folder) == expected)
            #expect(await fixture.provider.names(in: tree.inner).contains("deep=deep text"))
            #expect(try fixture.names() == ["moved"])
        }
    }

    @Test func whatOthersRemovedAsWellIsGone() async throws {
        try await withFolder { fixture, tree in
            await fixture.provider.remove(tree.folder)
            try removeAll(fixture, tree)
            try await settle(fixture)
            #expect(await fixture.provider.names() == [])
            #expect(try fixture.names() == [])
        }
    }
}
