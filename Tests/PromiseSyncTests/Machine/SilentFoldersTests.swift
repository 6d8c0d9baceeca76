import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

/// A file system below one folder of the provider's hangs, and listings there never come.
@Suite struct SilentFoldersTests {
    /// A root that holds folders of these names, all of which were listed.
    private func start(with names: [String], _ others: [Item] = []) throws -> MachineFixture {
        let fixture = try MachineFixture()
        fixture.start(with: others + names.map { MachineFixture.item($0, .folder) })
        for (index, name) in names.enumerated() {
            try fixture.open(name, UInt64(index) + 10)
            #expect(fixture.machine.answer("list /\(name)", "empty", .items([], isLast: true)))
        }
        fixture.machine.pass(.seconds(5))
        _ = fixture.machine.take()
        return fixture
    }

    /// The feed names these folders of the root, and the root if that is to be.
    private func tellOf(_ names: [String], andRoot: Bool, _ fixture: MachineFixture) {
        var folders = Set(names.map { ItemIdentifier("id-\($0)") })
        if andRoot { folders.insert(MachineFixture.root) }
        let page = ChangePage(foldersToList: folders, anchor: Anchor(rawValue: "2"))
        #expect(fixture.machine.answer("wait for changes", "folders", .changes(page)))
        fixture.machine.pass(.seconds(1))
    }

    /// All places for listings were theirs, the others never had one, and nothing was ever told.
    @Test(arguments: [5, 7])
    func soManyThatNoOtherFolderIsListedDoNotKeepWorkFromBeingTold(count: Int) throws {
        let names = Array(["a", "b", "c", "d", "e", "f", "g"].prefix(count))
        let fixture = try start(with: names)
        let machine = fixture.machine
        machine.happen("it is back", .started(isConnected: true, patience: nil))
        let root = names.map { MachineFixture.item($0, .folder) }
        #expect(machine.answer("list / again", "all", .items(root, isLast: true)))
        machine.pass(.seconds(50))
        let before = machine.take()
        #expect(before.contains("list /d again") && !before.contains("list /e"), "\(before)")
        machine.pass(.seconds(65))
        let after = machine.take()
        #expect(after.contains("list /e again") && !after.contains("list /g"), "\(after)")
        try fixture.make("link", .link)
        machine.pass(.seconds(1))
        #expect(!machine.take().contains("create link"))
        if count == 5 {
            machine.answer("list /e again", "empty", .items([], isLast: true))
        } else {
            // Of the provider's threads some are left for what programs want.
            machine.pass(.seconds(65))
        }
        machine.pass(.seconds(1))
        let last = machine.take()
        #expect(last.contains("create link") && !last.contains("list /g"), "\(last)")
    }

    /// With four of them no change in any other folder was seen again.
    @Test func otherFoldersAreListedAgain() throws {
        let names = ["a", "b", "c", "d"]
        let fixture = try start(with: names)
        let machine = fixture.machine
        tellOf(names, andRoot: false, fixture)
        fixture.tellNews()
        machine.pass(.seconds(30))
        let before = machine.take()
        #expect(!before.contains("list / again"), "\(before)")
        machine.pass(.seconds(60))
        let after = machine.take()
        #expect(after.contains("list / again"), "\(after)")
    }

    /// It was not asked for as long as one listing was under way, and stayed here for ever.
    @Test func whatOthersRemoveElsewhereIsRemovedHere() throws {
        let fixture = try start(with: ["silent"], [MachineFixture.item("file")])
        let machine = fixture.machine
        tellOf(["silent"], andRoot: true, fixture)
        let left = MachineFixture.item("silent", .folder)
        machine.answer("list / again", "no file", .items([left], isLast: true))
        #expect(!machine.take().contains("find"))
        machine.pass(.seconds(120))
        let after = machine.take()
        #expect(after.contains("find id-file at /file"), "\(after)")
        machine.answer("find", "nothing", .failure(ProviderError(.notFound, "gone")))
        #expect(try fixture.node("file") == nil)
    }

    /// What others had put into it was not seen.
    @Test func aFolderThatWasMadeHereIsLookedAt() throws {
        let fixture = try start(with: ["silent"])
        let machine = fixture.machine
        tellOf(["silent"], andRoot: false, fixture)
        machine.pass(.seconds(61))
        try fixture.make("new", .folder)
        machine.pass(.seconds(1))
        machine.answer("create new", "done", .item(MachineFixture.item("new", .folder)))
        machine.pass(.seconds(2))
        let done = machine.take()
        #expect(done.contains("list /new again"), "\(done)")
    }

    /// It was kept of each file of an endless copy, and after that for as long as the folder hung.
    @Test func whatOurOperationsTouchedIsForgottenAndWhatComesAfterAllIsNotBelieved() throws {
        let shown = ["x", "0"].map { MachineFixture.item($0, .link) }
        let fixture = try start(with: [], shown)
        let machine = fixture.machine
        func move(_ item: Item, from name: String, to other: String) throws {
            try fixture.rename(name, to: other)
            machine.pass(.seconds(1))
            var moved = item
            moved.name = FileName(other)!
            #expect(machine.answer("modify", "done", .item(moved)))
        }
        fixture.tellNews()
        machine.pass(.seconds(61))
        #expect(machine.take().contains("list / again"))
        try move(shown[0], from: "x", to: "y")
        for number in 1...1_100 {
            try move(shown[1], from: "\(number - 1)", to: "\(number)")
            guard number % 100 == 0 else { continue }
            let page = ChangePage(anchor: Anchor(rawValue: "\(number)"))
            #expect(machine.answer("wait for changes", "nothing", .changes(page)))
        }
        #expect(machine.touchedCount < 200)
        _ = machine.take()
        #expect(machine.answer("list / again", "as it was", .items(shown, isLast: true)))
        machine.pass(.seconds(1))
        let after = machine.take()
        #expect(after.contains("list / again"), "\(after)")
        #expect(try fixture.node("x") == nil && fixture.node("y") != nil)
    }

    /// It was begun again whenever something had been told meanwhile, for as long as programs saved.
    @Test func aFolderThatTakesMinutesToAnswerIsListedOnce() throws {
        let fixture = try start(with: ["a"], [MachineFixture.item("big", .folder)])
        let machine = fixture.machine
        try fixture.open("big", 7)
        try fixture.make("link", .link)
        machine.pass(.seconds(1))
        #expect(machine.answer("create link", "done", .item(MachineFixture.item("link", .link))))
        machine.pass(.seconds(90))
        tellOf(["a"], andRoot: false, fixture)
        #expect(machine.answer("list /a again", "empty", .items([], isLast: true)))
        machine.pass(.seconds(20))
        _ = machine.take()
        let item = MachineFixture.item("in", .link, in: "id-big")
        #expect(machine.answer("list /big", "at last", .items([item], isLast: true)))
        let done = machine.take()
        #expect(!done.contains("list /big again") && !done.contains("no longer"), "it was:\n\(done)")
        let folder = try #require(try fixture.node("big"))
        let found = try fixture.index.read { transaction throws(Failure) in
            try transaction.entry(in: folder, named: FileName("in")!)
        }
        #expect(found != nil)
    }
}
