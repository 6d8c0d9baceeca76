import PromiseCore
import PromiseProvider
import PromiseSync
import Testing

@Suite struct ListingsTranscriptTests {
    private func start() throws -> MachineFixture {
        let fixture = try MachineFixture()
        fixture.machine.happen("start", .started(isConnected: true, patience: nil))
        _ = fixture.machine.take()
        return fixture
    }

    @Test func whoReadsGoesOnWithTheFirstPageAndWhoWantsAllWaitsForTheLast() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.happen("one wants all", .listingWanted(.root, isWhole: true, Waiter(number: 1)))
        machine.happen(
            "another one reads", .listingWanted(.root, isWhole: false, Waiter(number: 2)))
        machine.answer("list", "a", .items([MachineFixture.item("a")], isLast: false))
        machine.answer("list", "b, the last", .items([MachineFixture.item("b")], isLast: true))
        machine.happen("one comes later", .listingWanted(.root, isWhole: true, Waiter(number: 3)))
        let gone = NodeID(rawValue: 99)
        machine.happen(
            "one wants what is gone", .listingWanted(gone, isWhole: true, Waiter(number: 4)))
        fixture.expect(
            """
            > one wants all
            list /, 1
            > another one reads
            > list: a
            reply to 2: it is there
            > list: b, the last
            reply to 1: it is there
            > one comes later
            reply to 3: it is there
            > one wants what is gone
            reply to 4: the folder is gone
            """)
    }

    @Test func aFolderThatCannotBeListedSaysWhyAndIsTriedAgain() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.happen("one wants all", .listingWanted(.root, isWhole: true, Waiter(number: 1)))
        let refusal = ProviderError(.refused, "it may not be read")
        machine.answer("list", "refused", .failure(refusal))
        machine.pass(.seconds(30))
        machine.happen("one wants all", .listingWanted(.root, isWhole: true, Waiter(number: 2)))
        machine.answer("list", "empty", .items([], isLast: true))
        machine.answer("ask for the anchor", "1", .anchor("1"))
        machine.answer("list", "broken", .failure(ProviderError(.retry, "it broke")))
        machine.pass(.seconds(16))
        fixture.expect(
            """
            > one wants all
            list /, 1
            > list: refused
            say: a folder cannot be listed (it may not be read)
            reply to 1: it may not be read
            > 30 s later
            make room
            > one wants all
            list /, 2
            > list: empty
            reply to 2: it is there
            > ask for the anchor: 1
            wait for changes since 1, feed 1
            list / again, 3
            > list: broken
            say: a folder cannot be listed (it broke)
            > 16 s later
            make room
            list / again, 4
            """)
    }

    @Test func whatAListingNoLongerShowsIsAskedForAndWhatIsNewIsShown() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("a"), MachineFixture.item("b")])
        let machine = fixture.machine
        fixture.tellNews()
        machine.pass(.seconds(1))
        let left = ["b", "c"].map { MachineFixture.item($0) }
        machine.answer("list", "b and c", .items(left, isLast: true))
        machine.answer("find", "nothing", .failure(ProviderError(.notFound, "gone")))
        fixture.expect(
            """
            > wait for changes: the root
            wait for changes since 2, feed 1
            > 1 s later
            list / again, 3
            > list: b and c
            show the name c
            find id-a at /a
            > find: nothing
            show the name a
            """)
    }

    /// Such a walk may go on for an hour, and nothing else was looked at meanwhile.
    @Test func aWalkThroughFoldersThatNobodyHasSeenHoldsUpNothingElse() throws {
        let fixture = try MachineFixture()
        let names = ["a", "b", "c", "d"]
        let folders = names.map { MachineFixture.item($0, .folder) }
        fixture.start(with: folders + [MachineFixture.item("file")])
        let machine = fixture.machine
        for (index, name) in names.enumerated() { try fixture.open(name, UInt64(index) + 10) }
        fixture.tellNews()
        machine.pass(.seconds(1))
        #expect(machine.answer("list / again", "no file", .items(folders, isLast: true)))
        let before = machine.take()
        #expect(!before.contains("find"), "\(before)")
        machine.pass(.seconds(11))
        machine.answer("list /a", "empty", .items([], isLast: true))
        let after = machine.take()
        #expect(after.contains("find id-file at /file"), "\(after)")
    }

    /// What others had made in its place at the provider was put into the file.
    @Test func whatIsAFileHereIsNotListed() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("a")])
        let file = NodeID(rawValue: 2)
        fixture.machine.happen(
            "one wants what is in a file", .listingWanted(file, isWhole: true, Waiter(number: 1)))
        fixture.expect(
            """
            > one wants what is in a file
            reply to 1: it is not a folder
            """)
    }

    @Test func nobodyWaitsForALineThatIsCut() throws {
        let fixture = try start()
        let machine = fixture.machine
        machine.happen("one wants all", .listingWanted(.root, isWhole: true, Waiter(number: 1)))
        machine.happen(
            "a fetch finds the line cut", .fetchTroubled(.root, ProviderError(.offline, "cut")))
        machine.answer("list", "a, too late", .items([MachineFixture.item("a")], isLast: true))
        fixture.expect(
            """
            > one wants all
            list /, 1
            > a fetch finds the line cut
            say: the provider cannot be reached (cut)
            end all fetches: cut
            no longer list, 1
            reply to 1: cut
            > list: a, too late
            """)
    }
}
