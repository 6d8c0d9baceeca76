import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

@Suite struct AskingTranscriptTests {
    private let others = MachineFixture.item("folder", .folder)

    private func start() throws -> MachineFixture {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("a"), others])
        return fixture
    }

    private func doubt(_ fixture: MachineFixture) throws {
        let node = try #require(try fixture.node("a"))
        fixture.machine.happen("a fetch finds another version", .itemDoubted(node))
    }

    @Test func whatIsElsewhereHasMoved() throws {
        let fixture = try start()
        let machine = fixture.machine
        let node = try fixture.node("a")
        try doubt(fixture)
        var moved = MachineFixture.item("a")
        moved.name = FileName("b")!
        machine.answer("find", "it is called b", .item(moved))
        fixture.expect(
            """
            > a fetch finds another version
            find id-a at /a
            > find: it is called b
            show the name a
            show the name b
            """)
        #expect(try fixture.node("b") == node)
    }

    @Test func whatIsNowhereIsRemovedHere() throws {
        let fixture = try start()
        let machine = fixture.machine
        let gone = ProviderError(.notFound, "gone")
        let node = try #require(try fixture.node("a"))
        machine.happen("a fetch finds nothing", .fetchTroubled(node, gone))
        machine.answer("list", "the folder only", .items([others], isLast: true))
        machine.answer("find", "nothing", .failure(gone))
        fixture.expect(
            """
            > a fetch finds nothing
            list / again, 3
            > list: the folder only
            find id-a at /a
            > find: nothing
            show the name a
            """)
        #expect(try fixture.node("a") == nil)
    }

    /// A file that others had replaced was missing until the folder was listed, once a fetch had met the new one.
    @Test func whatIsInThePlaceOfADoubtedFileTakesItsName() throws {
        let fixture = try start()
        let machine = fixture.machine
        let gone = ProviderError(.notFound, "gone")
        let node = try #require(try fixture.node("a"))
        machine.happen("a fetch finds another version", .fetchTroubled(node, ProviderError(.stale, "it is another")))
        machine.answer("find", "nothing", .failure(gone))
        #expect(try fixture.node("a") == node)
        var other = MachineFixture.item("a")
        other.identifier = ItemIdentifier("id-other")
        machine.answer("list", "another one", .items([other, others], isLast: true))
        #expect(try fixture.node("a") != nil)
        machine.answer("find", "nothing", .failure(gone))
        #expect(try fixture.node("a") != nil)
        let name = FileName("a")!
        try fixture.index.read { transaction throws(Failure) in
            #expect(try transaction.entry(in: .root, named: name)?.identifier == other.identifier)
        }
    }

    @Test func aQuestionThatFailsSaysNothingAndTheFolderIsLookedAtLater() throws {
        let fixture = try start()
        let machine = fixture.machine
        try doubt(fixture)
        machine.answer("find", "it broke", .failure(ProviderError(.retry, "it broke")))
        machine.pass(.seconds(6))
        fixture.expect(
            """
            > a fetch finds another version
            find id-a at /a
            > find: it broke
            > 6 s later
            make room
            list / again, 3
            """)
        #expect(try fixture.node("a") != nil)
    }

    @Test func anAnswerFromBeforeOurOwnMoveIsAskedForAgain() throws {
        let fixture = try start()
        let machine = fixture.machine
        try doubt(fixture)
        try fixture.rename("a", to: "b")
        machine.pass(.seconds(1))
        machine.answer("find", "nothing", .failure(ProviderError(.notFound, "gone")))
        var moved = MachineFixture.item("a")
        moved.name = FileName("b")!
        machine.answer("modify", "done", .item(moved))
        machine.answer("find", "it is b", .item(moved))
        fixture.expect(
            """
            > a fetch finds another version
            find id-a at /a
            > 1 s later
            modify /a of version v1, move to / as b
            > find: nothing
            find id-a at /a
            > modify: done
            > find: it is b
            find id-a at /b
            """)
        #expect(try fixture.node("b") != nil)
    }

    /// It stayed until a program read the folder.
    @Test(arguments: [true, false])
    func whatIsGoneFromAFolderThatWasListedInPartIsRemovedHere(isMissed: Bool) throws {
        let fixture = try start()
        let machine = fixture.machine
        try fixture.open("folder", 2)
        machine.answer("list /folder", "b", .items([MachineFixture.item("b", in: "id-folder")], isLast: false))
        machine.answer("list /folder", "it broke", .failure(ProviderError(.retry, "it broke")))
        let folder = try #require(try fixture.node("folder"))
        let node = try #require(try fixture.node("b", in: folder))
        let problem = ProviderError(isMissed ? .notFound : .stale, "it is not there")
        machine.happen("a fetch finds nothing", .fetchTroubled(node, problem))
        #expect(machine.answer("find id-b", "nothing", .failure(ProviderError(.notFound, "gone"))))
        #expect(try fixture.node("b", in: folder) == nil)
    }
}
