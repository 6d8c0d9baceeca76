import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

@Suite(.timeLimit(.minutes(4))) struct EngineTests {
    /// A fixture whose root is listed and whose file `a` is here with the text `base`.
    private func withFileA(_ body: (EngineFixture, ItemIdentifier) async throws -> Void) async throws {
        let fixture = try EngineFixture()
        let identifier = await fixture.provider.put("a", "base")
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            try await body(fixture, identifier)
        }
    }

    private func expectQuiet(_ fixture: EngineFixture) async throws {
        let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
        let remainder = try fixture.engine.remainder()
        #expect(isQuiet, "\(remainder)")
    }

    /// The conflict version among the names here.
    private func conflictVersion(_ fixture: EngineFixture) throws -> String? {
        try fixture.names().first { $0.hasPrefix("a (conflict, host, ") }
    }

    @Test func createdFilesAndFoldersAreUploaded() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await fixture.list()
            let folder = try fixture.create("folder", "", kind: .folder)
            try fixture.create("inside", "in", in: folder)
            try fixture.create("new", "content")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["folder/", "new=content"])
            let identifier = try #require(try fixture.entry("folder")?.identifier)
            #expect(await fixture.provider.names(in: identifier) == ["inside=in"])
            #expect(await fixture.provider.createCount == 3)
            #expect(fixture.engine.bytesUploaded == 9)
        }
    }

    /// The next try overwrote what was noted of the one before, whose effect was then taken for another program's.
    @Test func anEditAfterOneWhoseAnswerGotLostIsNoConflict() async throws {
        try await withFileA { fixture, _ in
            await fixture.provider.loseAcknowledgements(1)
            try fixture.edit("a", "first edit")
            let isThere = await fixture.eventually { await fixture.provider.names() == ["a=first edit"] }
            #expect(isThere)
            try fixture.edit("a", "the second edit")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=the second edit"])
            #expect(try fixture.names() == ["a"])
        }
    }

    /// What the provider had refused was taken for done later, as what others wrote there had the
    /// same size. A store that keeps no times tells nothing else of it.
    @Test(arguments: [true, false])
    func aRefusedUploadIsNotTakenForDoneBecauseOfItsSize(isNew: Bool) async throws {
        var capabilities = MemoryProvider.capabilities
        capabilities.remove([.metadata, .changePush])
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        let identifier = isNew ? nil : await fixture.provider.put("a", "base")
        try await fixture.run {
            try await fixture.list()
            if let identifier {
                try await fixture.hydrate(try #require(try fixture.node("a")).id)
                await fixture.provider.change(identifier, text: "two-1")
                try fixture.edit("a", "one-1")
            } else {
                await fixture.provider.put("a", "two-1")
                try fixture.create("a", "one-1")
            }
            try await expectQuiet(fixture)
            let conflict = try #require(try conflictVersion(fixture))
            #expect(await fixture.provider.names() == ["\(conflict)=one-1", "a=two-1"])
        }
    }

    /// Where there are times they say that it is ours, and where there are none the contents do.
    @Test(arguments: [true, false])
    func anUploadWhoseAnswerGotLostIsRecognisedWithTimesAndWithout(hasTimes: Bool) async throws {
        var capabilities = MemoryProvider.capabilities
        if !hasTimes { capabilities.remove(.metadata) }
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        try await fixture.run {
            try await fixture.list()
            await fixture.provider.loseAcknowledgements(1)
            try fixture.create("a", "mine")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=mine"])
            #expect(try fixture.names() == ["a"])
        }
    }

    /// A file was sent, and its answer was lost; a new file had taken its name meanwhile, as when a program saves by rename.
    /// Both had been edited as often, and the new one was taken for sent: what it held was lost.
    @Test(arguments: ["a newer text", "old"])
    func whatTookTheNameOfSentContentIsNotTakenForSent(text: String) async throws {
        var capabilities = MemoryProvider.capabilities
        capabilities.remove([.metadata, .changePush])
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        try await fixture.run {
            try await fixture.list()
            await fixture.provider.loseAcknowledgements(1)
            try fixture.create("a", "new")
            let isThere = await fixture.eventually { await fixture.provider.names() == ["a=new"] }
            #expect(isThere)
            try fixture.remove("a")
            try fixture.create("a", text)
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=\(text)"])
            #expect(try fixture.names() == ["a"])
        }
    }

    /// What the provider had of it was taken for somebody else's edit, and it came back.
    @Test func aFileIsRemovedAlsoWhenItsUploadGotNoAnswer() async throws {
        var capabilities = MemoryProvider.capabilities
        capabilities.remove([.metadata, .changePush])
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        await fixture.provider.put("a", "base")
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            await fixture.provider.loseAcknowledgements(1)
            try fixture.edit("a", "a new text")
            let isThere = await fixture.eventually { await fixture.provider.names() == ["a=a new text"] }
            #expect(isThere)
            try fixture.remove("a")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == [])
            #expect(try fixture.names() == [])
        }
    }

    private func step(_ fixture: EngineFixture) async throws -> SteppedOperation? {
        let result: Result<SteppedOperation?, Failure> = await withCheckedContinuation { continuation in
            fixture.engine.step { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// A sync that came while a step was under way ended nothing, and the rest was held for ever.
    @Test func aSyncDuringAStepLetsTheRestGo() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await fixture.list()
            #expect(try await step(fixture) == nil)
            let gate = Gate()
            await fixture.provider.holdAnswers(at: gate)
            try fixture.create("a", "first")
            try fixture.create("b", "second")
            async let stepped = step(fixture)
            let isThere = await fixture.eventually { await fixture.provider.names() == ["a=first"] }
            #expect(isThere)
            fixture.engine.lookNow()
            await fixture.provider.holdAnswers(at: nil)
            gate.open()
            #expect(try await stepped?.path == [FileName("a")!])
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=first", "b=second"])
        }
    }

    /// Whoever waited for the provider to have everything waited ten seconds for the time of a folder, which was to be looked
    /// at when what was in it had been told.
    @Test func aBarrierDoesNotWaitForALookAtLeisure() async throws {
        let fixture = try EngineFixture(clock: SlowClock())
        let folder = await fixture.provider.put("p", kind: .folder)
        try await fixture.run {
            try await fixture.list()
            let node = try #require(try fixture.node("p")).id
            try await fixture.list(node)
            let gate = Gate()
            await fixture.provider.holdAnswers(at: gate)
            try fixture.create("a", "x", in: node)
            let isThere = await fixture.eventually { await fixture.provider.names(in: folder) == ["a=x"] }
            #expect(isThere)
            await fixture.provider.change(folder, time: 2_000_000)
            // It is listed, and its time is not taken now.
            try await Task.sleep(for: .milliseconds(500))
            #expect(try fixture.node("p")?.modificationTime.seconds == 1_000_000)
            await fixture.provider.holdAnswers(at: nil)
            gate.open()
            let isTaken = try await fixture.eventually {
                try fixture.isQuiet() && fixture.node("p")?.modificationTime.seconds == 2_000_000
            }
            #expect(isTaken)
        }
    }

    /// Others had moved a file, and content was sent to it before that was known. The answer told where it is, which was
    /// agreed on, so that its name here looked like a move made here: theirs was undone.
    @Test func whatIsSentToAMovedFileUndoesNoMove() async throws {
        var capabilities = MemoryProvider.capabilities
        capabilities.remove(.changePush)
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        let identifier = await fixture.provider.put("a", "base")
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            await fixture.provider.move(identifier, name: "b")
            try fixture.edit("a", "edited")
            let isSent = await fixture.eventually { await fixture.provider.names().contains { $0.hasSuffix("=edited") } }
            #expect(isSent)
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["b=edited"])
            let isFollowed = try await fixture.eventually { try fixture.names() == ["b"] }
            #expect(isFollowed)
            #expect(try fixture.entry("b")?.identifier == identifier)
        }
    }

    /// A program wrote the bytes that a file had anew, while others edited it: that was taken for two edits.
    @Test func theSameBytesWrittenAnewAreNoConflict() async throws {
        var capabilities = MemoryProvider.capabilities
        capabilities.remove(.changePush)
        let fixture = try EngineFixture(MemoryProvider(capabilities))
        let identifier = await fixture.provider.put("a", "base")
        try await fixture.run {
            try await fixture.list()
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            await fixture.provider.change(identifier, text: "what others wrote")
            try fixture.edit("a", "base")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=what others wrote"])
            #expect(try fixture.names() == ["a"])
        }
    }

    @Test func editRenameAndDeletionReachTheProvider() async throws {
        try await withFileA { fixture, identifier in
            try fixture.edit("a", "edited")
            try fixture.rename("a", to: "b")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["b=edited"])
            #expect(try fixture.entry("b")?.identifier == identifier)
            try fixture.remove("b")
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == [])
        }
    }

    /// Each waited for the other to make room, and the provider was never told.
    /// > Names that went round (an exchange, or three renames) are changed at the provider one after the other.
    @Test func namesThatWentRoundAreChangedAtTheProvider() async throws {
        let fixture = try EngineFixture()
        for name in ["a", "b", "c"] { _ = await fixture.provider.put(name, "content of \(name)") }
        try await fixture.run {
            try await fixture.list()
            let identifiers = try ["a", "b", "c"].map { try fixture.entry($0)?.identifier }
            for (from, to) in [("a", "x"), ("c", "a"), ("b", "c"), ("x", "b")] { try fixture.rename(from, to: to) }
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=content of c", "b=content of a", "c=content of b"])
            #expect(try ["b", "c", "a"].map { try fixture.entry($0)?.identifier } == identifiers)
        }
    }

    @Test func namesExchangedAtTheProviderAreExchangedHere() async throws {
        let fixture = try EngineFixture()
        let first = await fixture.provider.put("a", "content of a")
        let second = await fixture.provider.put("b", "content of b")
        try await fixture.run {
            try await fixture.list()
            await fixture.provider.change(first, name: "x")
            await fixture.provider.change(second, name: "a")
            await fixture.provider.change(first, name: "b")
            #expect(try await fixture.eventually { try fixture.entry("a")?.identifier == second })
            try await expectQuiet(fixture)
            #expect(try fixture.names() == ["a", "b"])
            #expect(try fixture.entry("b")?.identifier == first)
            #expect(await fixture.provider.names() == ["a=content of b", "b=content of a"])
        }
    }

    @Test func remoteEditReplacesUneditedContent() async throws {
        try await withFileA { fixture, identifier in
            let before = try #require(try fixture.node("a"))
            await fixture.provider.change(identifier, text: "longer text")
            #expect(try await fixture.eventually { try fixture.node("a")?.size == 11 })
            let after = try #require(try fixture.node("a"))
            #expect(after.id == before.id && after.generation > before.generation && after.content == .absent)
            try await fixture.hydrate(after.id)
            #expect(try fixture.text("a") == "longer text")
            // After the commit that forgets it is synced.
            let isRemoved = try await fixture.eventually {
                try fixture.content.status(before.id, before.generation) == nil
            }
            #expect(isRemoved)
        }
    }

    @Test func openFileKeepsItsContentWhenTheProviderHasAnother() async throws {
        try await withFileA { fixture, identifier in
            let before = try #require(try fixture.node("a"))
            fixture.observer.setOpen(before.id, true)
            await fixture.provider.change(identifier, text: "longer text")
            #expect(try await fixture.eventually { try fixture.node("a")?.size == 11 })
            #expect(try fixture.node("a")?.id != before.id)
            #expect(try fixture.content.status(before.id, before.generation)?.size == 4)
        }
    }

    @Test func remoteRenameWithEditIsFollowedAndNotUndone() async throws {
        try await withFileA { fixture, identifier in
            await fixture.provider.change(identifier, text: "edited", name: "b", mode: 0o600)
            #expect(try await fixture.eventually { try fixture.names() == ["b"] })
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["b=edited"])
            let node = try #require(try fixture.node("b"))
            #expect(node.mode == 0o600)
            try await fixture.hydrate(node.id)
            #expect(try fixture.text("b") == "edited")
        }
    }

    /// > An upload names the version that it was based on.
    @Test func conflictKeepsBoth() async throws {
        try await withFileA { fixture, identifier in
            // The provider's edit is there before ours is told.
            await fixture.provider.change(identifier, text: "theirs")
            try fixture.edit("a", "our edit")
            try await expectQuiet(fixture)
            let name = try #require(try conflictVersion(fixture))
            #expect(try fixture.names() == ["a", name])
            #expect(await fixture.provider.names() == ["\(name)=our edit", "a=theirs"].sorted())
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            #expect(try fixture.text("a") == "theirs")
            #expect(try fixture.text(name) == "our edit")
        }
    }

    @Test func conflictWithARenameKeepsBothUnderTheNewName() async throws {
        try await withFileA { fixture, identifier in
            await fixture.provider.change(identifier, text: "theirs", name: "b")
            try fixture.edit("a", "our edit")
            try await expectQuiet(fixture)
            let name = try #require(try conflictVersion(fixture))
            #expect(try fixture.names() == [name, "b"])
            #expect(await fixture.provider.names() == ["\(name)=our edit", "b=theirs"])
        }
    }

    /// The file stayed under its new name here and under its old one at the provider, with nothing pending.
    @Test func aConflictOnAFileThatWasMovedHereStillTellsOfTheMove() async throws {
        try await withFileA { fixture, identifier in
            await fixture.provider.change(identifier, text: "theirs")
            try fixture.edit("a", "our edit")
            try fixture.rename("a", to: "b")
            try await expectQuiet(fixture)
            let name = try #require(try fixture.names().first { $0.hasPrefix("b (conflict, host, ") })
            #expect(try fixture.names() == ["b", name].sorted())
            #expect(await fixture.provider.names() == ["\(name)=our edit", "b=theirs"].sorted())
        }
    }

    @Test func sameEditOnBothSidesIsNoConflict() async throws {
        try await withFileA { fixture, identifier in
            await fixture.provider.change(identifier, text: "same")
            try fixture.edit("a", "same")
            try await expectQuiet(fixture)
            #expect(try fixture.names() == ["a"])
            #expect(await fixture.provider.names() == ["a=same"])
        }
    }

    @Test func lostAcknowledgementOfAnUploadIsNoConflict() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.loseAcknowledgements(1)
        try await fixture.run {
            try await fixture.list()
            try fixture.create("new", "content")
            try await expectQuiet(fixture)
            #expect(try fixture.names() == ["new"])
            #expect(try fixture.text("new") == "content")
            #expect(try fixture.entry("new")?.identifier != nil)
            #expect(await fixture.provider.names() == ["new=content"])
        }
    }

    /// Providers replace content first and move then. What is half done looked like somebody else's edit, and a file that was
    /// removed here meanwhile came back.
    @Test(arguments: [false, true]) func anOperationThatEndedBetweenContentAndPlaceIsNoConflict(isRemoved: Bool) async throws {
        try await withFileA { fixture, _ in
            await fixture.provider.breakOffBeforeMoves(1)
            try fixture.edit("a", "new content")
            try fixture.rename("a", to: "b")
            if isRemoved {
                while await fixture.provider.names() != ["a=new content"] { try await Task.sleep(for: .milliseconds(1)) }
                try fixture.remove("b")
            }
            try await expectQuiet(fixture)
            #expect(try fixture.names() == (isRemoved ? [] : ["b"]))
            #expect(await fixture.provider.names() == (isRemoved ? [] : ["b=new content"]))
        }
    }

    @Test func sameNameMadeOnBothSidesKeepsBoth() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await fixture.list()
            await fixture.provider.put("a", "theirs")
            try fixture.create("a", "our file")
            try await expectQuiet(fixture)
            let name = try #require(try conflictVersion(fixture))
            #expect(try fixture.names() == ["a", name])
            #expect(await fixture.provider.names() == ["\(name)=our file", "a=theirs"])
        }
    }

    @Test func remoteDeletionRemovesWhatWasNotEdited() async throws {
        try await withFileA { fixture, identifier in
            let node = try #require(try fixture.node("a"))
            await fixture.provider.remove(identifier)
            #expect(try await fixture.eventually { try fixture.names().isEmpty })
            #expect(try await fixture.eventually { try fixture.content.status(node.id, node.generation) == nil })
            try await expectQuiet(fixture)
        }
    }

    @Test func remoteDeletionOfAFolderKeepsTheEditsInIt() async throws {
        let fixture = try EngineFixture()
        let folder = await fixture.provider.put("folder", kind: .folder)
        await fixture.provider.put("edited", "base", in: folder)
        await fixture.provider.put("untouched", "base", in: folder)
        try await fixture.run {
            let node = try await fixture.listed("folder").id
            try await fixture.list(node)
            try await fixture.hydrate(try #require(try fixture.node("edited", in: node)).id)
            // The edit is made while the provider is away, so that it is not told before the deletion is seen.
            await fixture.provider.fail(ProviderError(.offline, "the cable is out"))
            fixture.engine.lookNow()
            #expect(await fixture.eventually { fixture.engine.connection != .online })
            try fixture.edit("edited", "our edit", in: node)
            await fixture.provider.remove(folder)
            await fixture.provider.fail(nil)
            #expect(try await fixture.eventually { try fixture.names(in: node) == ["edited"] })
            try await expectQuiet(fixture)
            #expect(try fixture.text("edited", in: node) == "our edit")
            #expect(await fixture.provider.names() == ["folder/"])
            let identifier = try #require(try fixture.entry("folder")?.identifier)
            #expect(identifier != folder)
            #expect(await fixture.provider.names(in: identifier) == ["edited=our edit"])
        }
    }

    @Test func localDeletionLosesToARemoteEdit() async throws {
        try await withFileA { fixture, identifier in
            await fixture.provider.change(identifier, text: "theirs")
            try fixture.remove("a")
            #expect(try await fixture.eventually { try fixture.node("a")?.size == 6 })
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=theirs"])
        }
    }

    @Test func workDoneOfflineIsToldLater() async throws {
        try await withFileA { fixture, _ in
            await fixture.provider.fail(ProviderError(.offline, "the cable is out"))
            try fixture.edit("a", "edited offline")
            try fixture.create("b", "made offline")
            #expect(await fixture.eventually { fixture.engine.connection != .online })
            #expect(try fixture.engine.remainder().pending == 2)
            await fixture.provider.fail(nil)
            try await expectQuiet(fixture)
            #expect(await fixture.provider.names() == ["a=edited offline", "b=made offline"])
        }
    }
}
