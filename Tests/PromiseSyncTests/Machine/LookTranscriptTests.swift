import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

/// Folders in which something of ours may be that was sent without an answer.
@Suite struct LookTranscriptTests {
    private let silence = ProviderError(.retry, "no answer")

    private func start(_ capabilities: Capabilities, with items: [Item] = []) throws -> MachineFixture {
        let fixture = try MachineFixture(capabilities)
        fixture.start(with: items)
        return fixture
    }

    /// It was wanted anew after five seconds, each time, so no listing had begun late enough: nothing was sent any more, and the
    /// folder was listed without end.
    @Test func aMoveGoesOnWhenTheFolderItLedToTakesLongToList() throws {
        let before = MachineFixture.item("v", .folder)
        let fixture = try start(MachineFixture.places, with: [before])
        let machine = fixture.machine
        try fixture.rename("v", to: "w")
        machine.pass(.seconds(1))
        machine.answer("modify", "no answer", .failure(silence))
        for _ in 0..<3 {
            machine.pass(.seconds(10))
            machine.answer("list", "not moved", .items([before], isLast: true))
        }
        let done = machine.take()
        #expect(done.ranges(of: "list / again").count == 1, "\(done)")
        #expect(done.ranges(of: "modify /v").count == 2, "\(done)")
    }

    @Test func whatWasRenamedIsMadeWhenTheFolderOfItsFirstNameTakesLongToList() throws {
        let fixture = try start(MachineFixture.pushing)
        let machine = fixture.machine
        try fixture.make("a", .link)
        machine.pass(.seconds(1))
        machine.answer("create a", "no answer", .failure(silence))
        try fixture.rename("a", to: "b")
        for _ in 0..<3 {
            machine.pass(.seconds(10))
            machine.answer("list", "nothing", .items([], isLast: true))
        }
        machine.pass(.seconds(1))
        let done = machine.take()
        #expect(done.ranges(of: "list / again").count == 1, "\(done)")
        #expect(done.contains("create b in /"), "\(done)")
    }

    /// It counted as gone before the listing came that was to show it, and what was edited in it was made anew.
    @Test func aFolderThatOthersMovedIsLookedForUntilTheFolderItWasInIsListed() throws {
        let folders = ["u", "v"].map { MachineFixture.item($0, .folder) }
        let fixture = try start([.placeIdentifiers, .metadata], with: folders)
        let machine = fixture.machine
        try fixture.open("u", 2)
        machine.answer("list /u", "nothing", .items([], isLast: true))
        try fixture.open("v", 3)
        machine.answer("list /v", "a", .items([MachineFixture.item("a", .link, in: "id-v")], isLast: true))
        // Items are asked for while all is listed.
        machine.pass(.seconds(60))
        let page = ChangePage(foldersToList: [folders[0].identifier], anchor: Anchor(rawValue: "2"))
        #expect(machine.answer("ask for changes", "all that is known", .changes(page)))
        let folder = try #require(try fixture.node("v"))
        try fixture.rename("a", to: "b", in: folder)
        let gone = ProviderError(.notFound, "gone")
        for _ in 0..<40 {
            machine.pass(.milliseconds(500))
            for call in ["modify", "list /v", "find"] { while machine.answer(call, "gone", .failure(gone)) {} }
        }
        let done = machine.take()
        #expect(done.contains("list / again"), "\(done)")
        #expect(try fixture.node("v") == folder, "\(done)")
    }

    /// What was sent to "x" without an answer, and to "y" by an exchange, was never taken for it: the look at the
    /// folder of "y" counts for five seconds, and a folder that takes a second to list is listed again after ten.
    @Test func whatWasSentTwiceIsRecognisedWhereListingTakesLong() throws {
        let items = ["x", "y"].map { MachineFixture.item($0) }
        let fixture = try start(MachineFixture.places, with: [items[1]])
        let machine = fixture.machine
        let file = try fixture.make("x", .file)
        try fixture.index.write { transaction throws(Failure) in
            let entry = try transaction.entry(in: .root, named: FileName("x")!)!
            try transaction.deletePending(.entry(entry.id))
            try transaction.setSynced(SyncedItem(item: items[1], edits: 7))
            let sent = SentChange(
                entry: entry.id, item: nil, isMove: false, parent: MachineFixture.root, name: entry.name, kind: .file, edits: 3,
                size: items[0].size, modificationTime: items[0].metadata.modificationTime, base: nil, target: nil)
            _ = try transaction.insertSent(sent)
        }
        fixture.tellNews()
        for _ in 0..<6 {
            machine.pass(.seconds(31))
            machine.answer("list", "both", .items(items, isLast: true))
            let identifier = try fixture.index.read { transaction throws(Failure) in
                try transaction.entries(of: file).first?.identifier
            }
            if identifier == items[0].identifier { return }
        }
        Issue.record("it is not recognised")
    }

    /// What had been made without an answer counted as not there, as its folder's listing broke off, and was made twice.
    @Test func aLookThatBrokeOffIsTakenAgain() throws {
        let top = MachineFixture.item("p", .folder)
        let fixture = try start(MachineFixture.places, with: [top])
        let machine = fixture.machine
        try fixture.open("p", 2)
        machine.answer("list /p", "d", .items([MachineFixture.item("d", .folder, in: "id-p")], isLast: true))
        let parent = try #require(try fixture.node("p"))
        try fixture.open("d", in: parent, 3)
        machine.answer("list /p/d", "nothing", .items([], isLast: true))
        let folder = try #require(try fixture.node("d", in: parent))
        let link = try fixture.make("a", .link, in: folder)
        machine.pass(.seconds(1))
        machine.answer("create a", "no answer", .failure(silence))
        try fixture.rename("a", to: "b", in: folder)
        machine.pass(.seconds(2))
        try fixture.rename("p", to: "q")
        machine.pass(.seconds(1))
        var moved = top
        moved.name = FileName("q")!
        #expect(machine.answer("modify /p", "done", .item(moved)))
        let made = MachineFixture.item("a", .link, in: "id-d")
        #expect(machine.answer("list /p/d again", "a", .items([made], isLast: true)))
        machine.pass(.seconds(1))
        machine.answer("list /q/d again", "a", .items([made], isLast: true))
        machine.pass(.seconds(1))
        let done = machine.take()
        #expect(!done.contains("create b"), "\(done)")
        #expect(done.contains("modify /q/d/a of version v1, move to /q/d as b"), "\(done)")
        #expect(try fixture.node("b", in: folder) == link)
    }

    /// Each folder in which a move without an answer was looked for was remembered for as long as the daemon ran.
    @Test func looksThatNobodyWaitsForAreForgotten() throws {
        let count = 300
        let folders = (0..<count).map { MachineFixture.item("d\($0)", .folder) }
        let links = (0..<count).map { MachineFixture.item("v\($0)", .link) }
        let fixture = try start(MachineFixture.places, with: folders + links)
        let machine = fixture.machine
        for number in 0..<count {
            try fixture.open("d\(number)", UInt64(number))
            machine.answer("list /d\(number)", "nothing", .items([], isLast: true))
            let folder = try #require(try fixture.node("d\(number)"))
            try fixture.rename("v\(number)", to: "v\(number)", movedTo: folder)
            machine.pass(.seconds(1))
            #expect(machine.answer("modify /v\(number)", "no answer", .failure(silence)))
            try fixture.remove("v\(number)", in: folder)
            machine.pass(.seconds(2))
            #expect(machine.answer("list /d\(number) again", "nothing", .items([], isLast: true)))
            machine.pass(.seconds(1))
            #expect(machine.answer("delete /v\(number)", "done", .done))
            if number == 9 { #expect(machine.lookCount == 10) }
            _ = machine.take()
        }
        #expect(machine.lookCount < 280)
    }
}
