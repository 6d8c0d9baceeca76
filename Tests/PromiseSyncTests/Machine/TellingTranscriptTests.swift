import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

@Suite struct TellingTranscriptTests {
    private func start(with items: [Item] = []) throws -> MachineFixture {
        let fixture = try MachineFixture()
        fixture.start(with: items)
        return fixture
    }

    @Test func whatIsInANewFolderWaitsForTheFolder() throws {
        let fixture = try start()
        let machine = fixture.machine
        let folder = try fixture.make("folder", .folder)
        try fixture.make("link", .link, in: folder)
        machine.pass(.seconds(1))
        machine.answer("create folder", "done", .item(MachineFixture.item("folder", .folder)))
        let link = MachineFixture.item("link", .link, in: "id-folder")
        machine.answer("create link", "done", .item(link))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 1 s later
            create folder in /
            > create folder: done
            create link in /folder
            > create link: done
            > 1 s later
            list /folder again, 3
            """)
    }

    /// Nothing was told for as long as the listing of one folder did not come.
    @Test func aFolderOfWhichNothingIsHeardIsPassedOver() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.happen("it is back", .started(isConnected: true, patience: nil))
        try fixture.make("link", .link)
        machine.pass(.seconds(30))
        let before = machine.take()
        #expect(before.contains("list / again") && !before.contains("create link"), "\(before)")
        for _ in 0..<4 { machine.pass(.seconds(10)) }
        let after = machine.take()
        #expect(after.contains("create link"), "\(after)")
    }

    @Test func aRefusedMoveIsSentAgainAfterALook() throws {
        let fixture = try start(with: [MachineFixture.item("a", .link)])
        let machine = fixture.machine
        try fixture.rename("a", to: "b")
        machine.pass(.seconds(1))
        machine.answer("modify", "refused", .failure(ProviderError(.conflict, "the name is taken")))
        machine.answer("list", "a", .items([MachineFixture.item("a", .link)], isLast: true))
        machine.answer("find", "as it was", .item(MachineFixture.item("a", .link)))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 1 s later
            modify /a of version v1, move to / as b
            > modify: refused
            list / again, 3
            > list: a
            find id-a at /a
            > find: as it was
            > 1 s later
            modify /a of version v1, move to / as b
            """)
    }

    /// What waited did so until it was as late again, a day or years.
    @Test func aClockThatIsSetBackHoldsNothingUp() throws {
        let fixture = try start()
        let machine = fixture.machine
        try fixture.make("link", .link)
        machine.pass(.seconds(1))
        machine.answer("create link", "busy", .failure(ProviderError(.retry, "busy")))
        machine.setClock(back: .seconds(86_400))
        machine.pass(.seconds(5))
        fixture.expect(
            """
            > 1 s later
            create link in /
            > create link: busy
            > the clock is set back
            > 5 s later
            create link in /
            make room
            """)
    }

    /// It seemed to have begun to wait only later, and so to be new, until the clock was as late again.
    @Test func aClockThatIsSetBackHoldsNothingUpWhileProgramsAreBusy() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.lastChange = .seconds(3_600)
        machine.setClock(back: .seconds(86_400))
        try fixture.make("link", .link)
        machine.pass(.seconds(5))
        let done = machine.take()
        #expect(done.contains("create link in /"), "\(done)")
    }

    /// As on a machine that began with a clock of another year.
    @Test func whatWasDueByAWrongClockGoesAfterTheNextStart() throws {
        let fixture = try MachineFixture()
        try fixture.make("link", .link)
        fixture.machine.setClock(back: .seconds(86_400 * 365))
        fixture.start()
        #expect(fixture.machine.take().isEmpty)
        #expect(fixture.machine.answer("create link", "done", .item(MachineFixture.item("link", .link))))
    }

    /// Others have put a folder where ours was, which would be moved or removed in its stead.
    @Test(arguments: [true, false])
    func aMoveWithoutAnswerIsLookedForFirst(isRemoval: Bool) throws {
        let fixture = try MachineFixture(MachineFixture.places)
        fixture.start(with: [MachineFixture.item("v", .folder)])
        let machine = fixture.machine
        let moved = try fixture.node("v")
        try fixture.rename("v", to: "w")
        machine.pass(.seconds(1))
        machine.answer("modify", "no answer", .failure(ProviderError(.retry, "no answer")))
        if isRemoval { try fixture.remove("w") }
        machine.pass(.seconds(2))
        let names = ["v", "w"].map { MachineFixture.item($0, .folder) }
        machine.answer("list", "both names", .items(names, isLast: true))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 1 s later
            modify /v of version folder, move to / as w
            > modify: no answer
            > 2 s later
            list / again, 3
            > list: both names
            > 1 s later\(isRemoval ? "\ndelete /w" : "")
            """)
        if !isRemoval { #expect(try fixture.node("w") == moved) }
    }

    /// It had not been there when it was looked for, and is not what others have made meanwhile.
    @Test func aMoveThatArrivedLateAndWasRefusedTheSecondTimeIsRecognised() throws {
        let fixture = try MachineFixture(MachineFixture.places)
        let places = ["v", "w"].map { MachineFixture.item($0, .folder) }
        fixture.start(with: [places[0]])
        let machine = fixture.machine
        let moved = try fixture.node("v")
        try fixture.rename("v", to: "w")
        machine.pass(.seconds(1))
        machine.answer("modify", "no answer", .failure(ProviderError(.retry, "no answer")))
        machine.pass(.seconds(2))
        machine.answer("list", "not moved", .items([places[0]], isLast: true))
        machine.pass(.seconds(1))
        let taken = ProviderError(.conflict, "the name is taken")
        machine.answer("modify", "the name is taken", .failure(taken))
        machine.answer("list", "both", .items(places, isLast: true))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 1 s later
            modify /v of version folder, move to / as w
            > modify: no answer
            > 2 s later
            list / again, 3
            > list: not moved
            > 1 s later
            modify /v of version folder, move to / as w
            > modify: the name is taken
            list / again, 4
            > list: both
            find id-v at /w
            > 1 s later
            make room
            """)
        #expect(try fixture.node("w") == moved)
    }

    @Test func whatIsInARemovedFolderGoesFirst() throws {
        let fixture = try start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        let folder = try #require(try fixture.node("folder"))
        try fixture.open("folder", 2)
        let link = MachineFixture.item("link", .link, in: "id-folder")
        machine.answer("list", "a link", .items([link], isLast: true))
        try fixture.remove("link", in: folder)
        try fixture.remove("folder")
        machine.pass(.seconds(1))
        machine.answer("delete /folder/link", "done", .done)
        machine.answer("delete", "done", .done)
        machine.pass(.seconds(2))
        fixture.expect(
            """
            > a program opens folder
            list /folder, 3
            > list: a link
            reply to 2: it is there
            > 1 s later
            delete /folder/link
            > delete /folder/link: done
            delete /folder
            > delete: done
            > 2 s later
            """)
    }

    @Test func aStepIsOneOperationAndThenNothingGoesByItself() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.happen("a step", .stepWanted(Waiter(number: 2)))
        for name in ["a", "b"] { try fixture.make(name, .link) }
        machine.happen("a step", .stepWanted(Waiter(number: 3)))
        machine.happen("another one too early", .stepWanted(Waiter(number: 4)))
        machine.answer("create a", "done", .item(MachineFixture.item("a", .link)))
        machine.pass(.seconds(10))
        machine.happen("everything may go", .lookWanted(everything: false))
        fixture.expect(
            """
            > a step
            reply to 2: step none
            > a step
            create a in /
            > another one too early
            reply to 4: other work is still under way
            > create a: done
            reply to 3: step create
            > 10 s later
            make room
            > everything may go
            note open writes
            list / again, 3
            create b in /
            """)
    }

    @Test func whatArrivedWithoutAnAnswerIsNotMadeAgain() throws {
        let fixture = try start()
        let machine = fixture.machine
        try fixture.make("a", .link)
        machine.pass(.seconds(1))
        machine.answer("create a", "cut", .failure(ProviderError(.offline, "cut")))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        let arrived = MachineFixture.item("a", .link)
        machine.answer("list", "with a, as it arrived", .items([arrived], isLast: true))
        machine.pass(.seconds(2))
        fixture.expect(
            """
            > 1 s later
            create a in /
            > create a: cut
            say: the provider cannot be reached (cut)
            end all fetches: cut
            > 2 s later
            ask for the root
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 3
            > list: with a, as it arrived
            > 2 s later
            make room
            """)
    }

    /// Something else was just being made under its first name when that was looked at: it counted as not there, was made again
    /// under its new name, and came back under the first one.
    @Test func whatALookHasLeftOutIsLookedForAgain() throws {
        let fixture = try start()
        let machine = fixture.machine
        try fixture.make("d", .folder)
        machine.pass(.seconds(1))
        machine.answer("create d", "no answer", .failure(ProviderError(.retry, "no answer")))
        try fixture.rename("d", to: "e")
        try fixture.make("d", .folder)
        machine.pass(.seconds(2))
        let arrived = MachineFixture.item("d", .folder)
        #expect(machine.answer("list", "d", .items([arrived], isLast: true)))
        #expect(machine.answer("create d", "taken", .failure(ProviderError(.conflict, "the name is taken"))))
        machine.pass(.milliseconds(200))
        #expect(machine.answer("list", "d", .items([arrived], isLast: true)))
        machine.pass(.seconds(1))
        var moved = arrived
        moved.name = FileName("e")!
        #expect(machine.answer("modify /d of version folder, move to / as e", "done", .item(moved)))
        #expect(!machine.take().contains("create e"))
    }

    /// The answer that gave it another identifier counted as if the mode had been agreed on, and the one from here was told.
    @Test func aModeThatOthersGaveStaysWhenAMoveGivesAnotherIdentifier() throws {
        let fixture = try MachineFixture([.metadata, .changeFeed, .changePush])
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        try fixture.rename("folder", to: "other")
        machine.pass(.seconds(1))
        var moved = MachineFixture.item("other", .folder)
        moved.metadata.mode = 0o700
        #expect(machine.answer("modify /folder", "done", .item(moved)))
        machine.pass(.seconds(5))
        let node = try #require(try fixture.node("other"))
        #expect(try fixture.index.read { transaction throws(Failure) in try transaction.node(node)?.mode } == 0o700)
        let done = machine.take()
        #expect(!done.contains("modify /other"), "\(done)")
    }

    /// A listing showed it there before the answer came, as something new; the answer could not be stored, and nothing went on.
    @Test func whatOthersMoveBeforeItsAnswerComesIsTheSameItem() throws {
        let fixture = try start(with: [MachineFixture.item("v", .folder)])
        let machine = fixture.machine
        try fixture.open("v", 7)
        machine.answer("list", "nothing", .items([], isLast: true))
        let made = try fixture.make("a", .link)
        machine.pass(.seconds(1))
        machine.happen("somebody looks", .lookWanted(everything: true))
        machine.answer("list /v", "a", .items([MachineFixture.item("a", .link, in: "id-v")], isLast: true))
        #expect(machine.answer("create a", "done", .item(MachineFixture.item("a", .link))))
        machine.pass(.seconds(5))
        let folder = try #require(try fixture.node("v"))
        let found = try fixture.index.read { transaction throws(Failure) in
            try transaction.entry(in: folder, named: FileName("a")!)
        }
        #expect(try fixture.node("a") == nil)
        #expect(found?.node == made)
        let done = machine.take()
        #expect(done.hasSuffix("> 5 s later\nmake room"), "it was:\n\(done)")
    }
}
