import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseTestSupport
import Testing

/// On a store that knows places only, an item stays the same item when it is moved here.
@Suite(.timeLimit(.minutes(2))) struct PlaceIdentityTests {
    /// A fixture whose root is listed and whose files `a` and `b` are here.
    private func withFiles(
        keepsMetadata: Bool = true, guesses: Bool = false, _ body: (EngineFixture) async throws -> Void
    ) async throws {
        let provider = PlaceProvider(keepsMetadata: keepsMetadata, guesses: guesses)
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        await fixture.provider.put("a", "text of a")
        await fixture.provider.put("b", "text of b")
        try await fixture.run {
            try await fixture.list()
            for name in ["a", "b"] { try await fixture.hydrate(try #require(try fixture.node(name)).id) }
            try await body(fixture)
        }
    }

    private func settle(_ fixture: EngineFixture) async throws {
        let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
        let remainder = try fixture.engine.remainder()
        #expect(isQuiet, "\(remainder)")
        // What a look at the store finds must be what is known already.
        fixture.engine.lookNow()
        let isQuietAgain = try await fixture.eventually { try fixture.isQuiet() }
        #expect(isQuietAgain)
    }

    /// Each was "of which the index does not know" at its new place, and missing there at once.
    @Test func whatWasRenamedIsNoDifferenceFromTheProvider() async throws {
        let provider = PlaceProvider(keepsMetadata: true, guesses: false)
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        await fixture.provider.put("a", "text of a")
        try await fixture.run {
            try await fixture.list()
            try fixture.rename("a", to: "c")
            try fixture.create("a", "another")
            try await settle(fixture)
            let verification = ProviderVerification(
                index: fixture.index, content: fixture.content, provider: provider,
                rootIdentifier: MemoryProvider.rootIdentifier)
            #expect(try await verification.compareItems() == [])
            // The engine may look at any moment, and knows it then.
            var number = 0
            let isTold = try await fixture.eventually {
                number += 1
                await fixture.provider.put("stranger \(number)", "not known yet")
                return try await verification.compareItems().count == 1
            }
            #expect(isTold)
        }
    }

    @Test func aRenamedFileKeepsItsIdentifierAndItsNodeAndItsOldNameIsFree() async throws {
        try await withFiles { fixture in
            let before = try #require(try fixture.entry("a"))
            try fixture.rename("a", to: "c")
            try fixture.create("a", "another")
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["a=another", "b=text of b", "c=text of a"])
            let after = try #require(try fixture.entry("c"))
            #expect(after.identifier == before.identifier && after.node == before.node)
            #expect(try fixture.entry("a")?.identifier != before.identifier)
            #expect(try fixture.text("c") == "text of a" && fixture.text("a") == "another")
            #expect(await fixture.provider.countFetches() == 2, "nothing came again")
        }
    }

    /// It was called as the one that was removed, and who had been given that had a right to it.
    @Test(arguments: [true, false])
    func whatIsMadeInThePlaceOfWhatWasGivenIsAnotherItem(isRemote: Bool) async throws {
        try await withFiles { fixture in
            let before = try #require(try fixture.entry("a")?.identifier)
            try fixture.index.write { transaction throws(Failure) in
                try GivenNames.set(before, isGiven: true, transaction)
            }
            if isRemote {
                let there = await fixture.provider.item(at: [FileName("a")!])
                await fixture.provider.remove(try #require(there).item.identifier)
            } else {
                try fixture.remove("a")
            }
            let isGone = try await fixture.eventually {
                fixture.engine.lookNow()
                let agreed = try fixture.index.read { transaction throws(Failure) in
                    try transaction.synced(before)
                }
                return try agreed == nil && fixture.entry("a") == nil
            }
            #expect(isGone)
            if isRemote {
                await fixture.provider.put("a", "another")
            } else {
                try fixture.create("a", "another")
            }
            let isThere = try await fixture.eventually {
                fixture.engine.lookNow()
                return try fixture.entry("a")?.identifier != nil
            }
            #expect(isThere)
            try await settle(fixture)
            #expect(try fixture.entry("a")?.identifier != before)
            #expect(await fixture.provider.names() == ["a=another", "b=text of b"])
        }
    }

    @Test func whatIsInARenamedFolderStaysWhatItIs() async throws {
        try await withFiles { fixture in
            let folder = try fixture.create("folder", "", kind: .folder)
            let inner = try fixture.create("inner", "", kind: .folder, in: folder)
            try fixture.create("file", "deep", in: inner)
            try await settle(fixture)
            let before = try #require(try fixture.entry("file", in: inner))
            try fixture.rename("folder", to: "moved")
            try await settle(fixture)
            try fixture.edit("file", "deeper", in: inner)
            try await settle(fixture)
            #expect(try fixture.entry("file", in: inner)?.identifier == before.identifier)
            #expect(await fixture.provider.names() == ["a=text of a", "b=text of b", "moved/"])
            let path = ["moved", "inner", "file"].map { FileName($0)! }
            #expect(await fixture.provider.item(at: path)?.bytes == Array("deeper".utf8))
            #expect(await fixture.provider.countFetches() == 2, "nothing came again")
        }
    }

    @Test func twoNamesThatAreExchangedGoRound() async throws {
        try await withFiles { fixture in
            try fixture.rename("a", to: "c")
            try fixture.rename("b", to: "a")
            try fixture.rename("c", to: "b")
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["a=text of b", "b=text of a"])
            #expect(try fixture.names() == ["a", "b"])
        }
    }

    /// The move happens, its answer does not come: what is found at the new place is the item that was sent there.
    @Test(arguments: [true, false]) func aMoveWhoseAnswerGotLostIsRecognised(keepsMetadata: Bool) async throws {
        try await withFiles(keepsMetadata: keepsMetadata) { fixture in
            let before = try #require(try fixture.entry("a"))
            await fixture.provider.loseAcknowledgements(1)
            try fixture.rename("a", to: "c")
            try await settle(fixture)
            let there = await fixture.provider.names()
            #expect(there == ["b=text of b", "c=text of a"])
            let here = try fixture.names()
            #expect(here == ["b", "c"])
            #expect(try fixture.entry("c")?.node == before.node)
            #expect(try fixture.text("c") == "text of a")
            #expect(await fixture.provider.countFetches() == 2, "nothing came again")
        }
    }

    @Test func aMoveWhoseAnswerGotLostAndThatWasDeletedMeanwhileIsDeleted() async throws {
        try await withFiles { fixture in
            await fixture.provider.loseAcknowledgements(1)
            try fixture.rename("a", to: "c")
            let isThere = await fixture.eventually { await fixture.provider.names().contains("c=text of a") }
            #expect(isThere)
            try fixture.remove("c")
            try await settle(fixture)
            #expect(await fixture.provider.names() == ["b=text of b"])
            #expect(try fixture.names() == ["b"])
        }
    }

    // MARK: A store that numbers its items

    private struct Tree {
        var a: ItemIdentifier
        var folder: ItemIdentifier
        var other: ItemIdentifier
        var nodes: [String: NodeID] = [:]
    }

    /// `a`, here, and `folder/inner/deep` and `other`, everything listed.
    private func withNumbers(
        copies: [String: String] = [:], _ body: (EngineFixture, Tree) async throws -> Void
    ) async throws {
        var provider = PlaceProvider(numbers: true)
        provider.copies = copies
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        let memory = fixture.provider
        var tree = Tree(
            a: await memory.put("a", "text of a"), folder: await memory.put("folder", kind: .folder),
            other: await memory.put("other", kind: .folder))
        let inner = await memory.put("inner", kind: .folder, in: tree.folder)
        await memory.put("deep", "text", in: inner)
        try await fixture.run {
            try await fixture.list()
            tree.nodes["a"] = try #require(try fixture.node("a")).id
            try await fixture.hydrate(tree.nodes["a"]!)
            var parent = NodeID.root
            for name in ["folder", "inner", "deep"] {
                parent = try #require(try fixture.node(name, in: parent)).id
                tree.nodes[name] = parent
                if name != "deep" { try await fixture.list(parent) }
            }
            tree.nodes["other"] = try #require(try fixture.node("other")).id
            try await fixture.list(tree.nodes["other"]!)
            try await body(fixture, tree)
            #expect(await fixture.provider.countFetches() == 1, "nothing came again")
        }
    }

    @Test func aFileThatOthersMovedIsTheSameFile() async throws {
        try await withNumbers { fixture, tree in
            await fixture.provider.move(tree.a, name: "renamed")
            let isRenamed = try await fixture.eventually { try fixture.node("renamed")?.id == tree.nodes["a"] }
            #expect(isRenamed)
            #expect(try fixture.entry("a") == nil)
            try await settle(fixture)
            await fixture.provider.move(tree.a, to: tree.other, name: "moved")
            let isMoved = try await fixture.eventually {
                try fixture.node("moved", in: tree.nodes["other"]!)?.id == tree.nodes["a"]
            }
            #expect(isMoved)
            #expect(try fixture.entry("renamed") == nil)
            try await settle(fixture)
            #expect(try fixture.text("moved", in: tree.nodes["other"]!) == "text of a")
            #expect(await fixture.provider.names() == ["folder/", "other/"])
        }
    }

    /// What was in it is asked for only when it is known where the folder is now.
    @Test func aFolderThatOthersMovedKeepsWhatIsInIt() async throws {
        try await withNumbers { fixture, tree in
            await fixture.provider.move(tree.folder, to: tree.other, name: "moved")
            let isMoved = try await fixture.eventually {
                try fixture.node("moved", in: tree.nodes["other"]!)?.id == tree.nodes["folder"]
            }
            #expect(isMoved)
            try await settle(fixture)
            #expect(try fixture.node("inner", in: tree.nodes["folder"]!)?.id == tree.nodes["inner"])
            #expect(try fixture.node("deep", in: tree.nodes["inner"]!)?.id == tree.nodes["deep"])
            #expect(try fixture.names() == ["a", "other"])
        }
    }

    @Test func aNewFileInThePlaceOfOneThatOthersMovedIsAnother() async throws {
        try await withNumbers { fixture, tree in
            await fixture.provider.move(tree.a, to: tree.other, name: "moved")
            await fixture.provider.put("a", "new")
            let isMoved = try await fixture.eventually {
                try fixture.node("moved", in: tree.nodes["other"]!)?.id == tree.nodes["a"]
                    && fixture.node("a").map { $0.id != tree.nodes["a"] } == true
            }
            #expect(isMoved)
            try await settle(fixture)
        }
    }

    /// Also one whose number is another one's, which is where it was.
    @Test func aNumberThatIsSeenTwiceIsTwoItems() async throws {
        try await withNumbers(copies: ["copy": "item-1"]) { fixture, tree in
            await fixture.provider.put("copy", "text of a")
            let isSeen = try await fixture.eventually { try fixture.node("copy") != nil }
            #expect(isSeen)
            try await settle(fixture)
            #expect(try fixture.node("a")?.id == tree.nodes["a"])
            #expect(try fixture.node("copy")?.id != tree.nodes["a"])
            #expect(try fixture.names() == ["a", "copy", "folder", "other"])
        }
    }

    // MARK: Others

    @Test func newContentAtAPlaceIsTheSameItem() async throws {
        try await withFiles { fixture in
            let before = try #require(try fixture.entry("a"))
            let stored = await fixture.provider.item(at: [FileName("a")!])
            await fixture.provider.remove(try #require(stored).item.identifier)
            await fixture.provider.put("a", "made anew")
            let isSeen = try await fixture.eventually { try fixture.node("a")?.content == .absent }
            #expect(isSeen)
            #expect(try fixture.entry("a")?.identifier == before.identifier)
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            #expect(try fixture.text("a") == "made anew")
        }
    }

    @Test func aFolderInThePlaceOfAFileIsAnotherItem() async throws {
        try await withFiles { fixture in
            let before = try #require(try fixture.entry("a"))
            let stored = await fixture.provider.item(at: [FileName("a")!])
            await fixture.provider.remove(try #require(stored).item.identifier)
            await fixture.provider.put("a", kind: .folder)
            let isSeen = try await fixture.eventually { try fixture.node("a")?.kind == .folder }
            #expect(isSeen)
            #expect(try fixture.entry("a")?.identifier != before.identifier)
            try await settle(fixture)
        }
    }

    @Test func modesAndTimesStayHereWhereTheStoreKeepsNone() async throws {
        try await withFiles(keepsMetadata: false) { fixture in
            try fixture.index.write { transaction throws(Failure) in
                guard let entry = try transaction.entry(in: .root, named: FileName("a")!),
                    var node = try transaction.node(entry.node)
                else { return }
                node.mode = 0o600
                node.modificationTime = Timestamp(seconds: 77, nanoseconds: 0)
                try transaction.update(node)
                try transaction.setPending(Pending(subject: .entry(entry.id), since: .zero, due: .zero))
            }
            fixture.engine.notePending()
            try await settle(fixture)
            let node = try #require(try fixture.node("a"))
            #expect(node.mode == 0o600 && node.modificationTime.seconds == 77 && node.content == .whole)
        }
    }

    /// A folder of WebDAV or S3 without a time was shown of 1970.
    @Test func aFolderWhoseTimeNobodyTellsIsAsOldAsItIsKnownHere() async throws {
        try await withFiles { fixture in
            await fixture.provider.put("folder", kind: .folder, time: .zero)
            let isSeen = try await fixture.eventually { try fixture.node("folder") != nil }
            #expect(isSeen)
            try await settle(fixture)
            let time = try #require(try fixture.node("folder")).modificationTime
            #expect(time.seconds > 1_500_000_000)
            // Nobody is told of what is only known here.
            let stored = try #require(await fixture.provider.item(at: [FileName("folder")!])).item
            #expect(stored.metadata.modificationTime == .zero)
        }
    }

    @Test func aListingThatGuessesChangesNothingThatIsKnown() async throws {
        try await withFiles(guesses: true) { fixture in
            try fixture.create("c", "made here")
            try await settle(fixture)
            let before = try #require(try fixture.node("c"))
            await fixture.provider.put("d", "by another")
            let isSeen = try await fixture.eventually { try fixture.node("d") != nil }
            #expect(isSeen)
            try await settle(fixture)
            let after = try #require(try fixture.node("c"))
            #expect(after.mode == before.mode && after.modificationTime == before.modificationTime)
            #expect(after.modificationTime.seconds != 7 && after.content == .whole)
            // What nobody has said yet is as the listing guesses.
            #expect(try fixture.node("d")?.modificationTime.seconds == 7)
        }
    }
}
