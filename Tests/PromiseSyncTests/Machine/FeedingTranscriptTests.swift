import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

@Suite struct FeedingTranscriptTests {
    @Test func foldersThatTheFeedNamesAreListedAgain() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        fixture.tellNews()
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > wait for changes: the root
            wait for changes since 2, feed 1
            > 1 s later
            list / again, 3
            """)
    }

    @Test func whatAFeedNoLongerKnowsIsLookedForFromTheBeginning() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let old = ProviderError(.anchorExpired, "too old")
        machine.answer("wait for changes", "too old", .failure(old))
        machine.answer("ask for the anchor", "7", .anchor("7"))
        fixture.expect(
            """
            > wait for changes: too old
            ask for the anchor, feed 1
            > ask for the anchor: 7
            wait for changes since 7, feed 1
            list / again, 3
            """)
    }

    /// It was asked again and again from the same anchor, and nothing said that changes are not seen.
    @Test func aFeedThatFailsForGoodBeginsAnew() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        for _ in 0..<4 {
            var pause = 0
            while !machine.answer("wait for changes", "broken", .failure(ProviderError(.permanent, "broken"))), pause < 200 {
                machine.pass(.seconds(1))
                pause += 1
            }
        }
        #expect(machine.answer("ask for the anchor", "7", .anchor("7")))
    }

    /// Each round lists all that is known.
    @Test func aFeedThatRefusesTheAnchorsItGivesBeginsEverLessOften() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let old = ProviderError(.anchorExpired, "too old")
        machine.answer("wait for changes", "too old", .failure(old))
        var pauses: [Int] = []
        for round in 2...7 {
            var pause = 0
            while !machine.answer("ask for the anchor", "\(round)", .anchor("\(round)")), pause < 100 {
                machine.pass(.seconds(1))
                pause += 1
            }
            pauses.append(pause)
            #expect(machine.answer("wait for changes", "too old", .failure(old)))
        }
        #expect(pauses == [0, 1, 2, 4, 8, 16])
        // Changes came: the next time it begins anew at once.
        while !machine.answer("ask for the anchor", "8", .anchor("8")) { machine.pass(.seconds(1)) }
        let page = ChangePage(anchor: Anchor(rawValue: "9"))
        #expect(machine.answer("wait for changes", "nothing", .changes(page)))
        #expect(machine.answer("wait for changes", "too old", .failure(old)))
        #expect(machine.answer("ask for the anchor", "10", .anchor("10")))
    }

    /// It was asked as fast as it answered, with a processor's whole time.
    @Test func aFeedThatAnswersAtOnceAndSaysNothingIsAskedEverLessOften() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        var pauses: [Int] = []
        for round in 2...14 {
            let nothing = ChangePage(anchor: Anchor(rawValue: "\(round)"))
            var pause = 0
            while !machine.answer("wait for changes", "nothing", .changes(nothing)), pause < 5_000 {
                machine.pass(.milliseconds(50))
                pause += 50
            }
            pauses.append(pause)
        }
        // The first one had been waited for; a few come of what was done here.
        #expect(pauses == [0, 0, 0, 0, 0, 0, 50, 100, 200, 400, 800, 1_000, 1_000])
        machine.pass(.seconds(1))
        #expect(machine.answer("wait for changes", "news", .changes(
            ChangePage(foldersToList: [MachineFixture.root], anchor: Anchor(rawValue: "15")))))
        // What has news is asked for more at once, and so is what takes its time.
        for round in 16...30 {
            let nothing = ChangePage(anchor: Anchor(rawValue: "\(round)"))
            machine.pass(.seconds(1))
            #expect(machine.answer("wait for changes", "nothing", .changes(nothing)))
        }
        #expect(machine.answer("wait for changes", "more", .changes(
            ChangePage(foldersToList: [MachineFixture.root], anchor: Anchor(rawValue: "31")))))
    }

    /// The next answer would be the same.
    @Test func aFeedThatNamesTheSameAgainAndAgainIsAskedEverLessOften() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let page = ChangePage(foldersToList: [MachineFixture.root], anchor: Anchor(rawValue: "2"))
        var count = 0
        while count < 100, machine.answer("wait for changes", "the root", .changes(page)) { count += 1 }
        #expect(count == 6)
    }

    @Test func aFeedThatHasNoAnchorToBeginWithIsAskedEverLessOften() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let old = ProviderError(.anchorExpired, "too old")
        machine.answer("wait for changes", "too old", .failure(old))
        #expect(machine.answer("ask for the anchor", "too old", .failure(old)))
        #expect(!machine.answer("ask for the anchor", "too old", .failure(old)))
        machine.pass(.seconds(1))
        #expect(machine.answer("ask for the anchor", "too old", .failure(old)))
        machine.pass(.seconds(1))
        #expect(!machine.answer("ask for the anchor", "too old", .failure(old)))
        machine.pass(.seconds(1))
        #expect(machine.answer("ask for the anchor", "too old", .failure(old)))
    }

    @Test func aFeedThatFailsIsTriedEverLessOften() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let trouble = ProviderError(.retry, "it broke")
        machine.answer("wait for changes", "it broke", .failure(trouble))
        for pause in [1, 1, 1, 2, 2] {
            machine.pass(.seconds(pause))
            machine.answer("wait for changes", "it broke", .failure(trouble))
        }
        fixture.expect(
            """
            > wait for changes: it broke
            > 1 s later
            wait for changes since 1, feed 1
            > wait for changes: it broke
            > 1 s later
            > 1 s later
            wait for changes since 1, feed 1
            > wait for changes: it broke
            > 2 s later
            make room
            > 2 s later
            wait for changes since 1, feed 1
            > wait for changes: it broke
            """)
    }

    @Test func whatAnEarlierFeedSaysIsNotMeantAnyMore() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.happen("the line is cut", .fetchTroubled(.root, ProviderError(.offline, "cut")))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        fixture.tellNews()
        fixture.expect(
            """
            > the line is cut
            say: the provider cannot be reached (cut)
            end all fetches: cut
            > 2 s later
            ask for the root
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 3
            > wait for changes: the root
            """)
    }

    @Test func aProviderWithoutAFeedIsPolledAndNotWhileAPollIsUnderWay() throws {
        let fixture = try MachineFixture(MachineFixture.polled)
        fixture.start()
        let machine = fixture.machine
        let page = ChangePage(foldersToList: [MachineFixture.root], anchor: Anchor(rawValue: "2"))
        machine.pass(.seconds(60))
        machine.answer("ask for changes", "all that is known", .changes(page))
        machine.pass(.seconds(60))
        machine.answer("ask for changes", "all that is known", .changes(page))
        machine.answer("list", "nothing new", .items([], isLast: true))
        machine.pass(.seconds(60))
        machine.answer("ask for changes", "all that is known", .changes(page))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 60 s later
            see what is used
            ask for changes since 1, feed 1
            make room
            make room
            > ask for changes: all that is known
            > 60 s later
            list / again, 3
            see what is used
            make room
            ask for changes since 2, feed 1
            make room
            > ask for changes: all that is known
            > list: nothing new
            > 60 s later
            see what is used
            make room
            ask for changes since 2, feed 1
            make room
            > ask for changes: all that is known
            > 1 s later
            list / again, 4
            """)
    }

    /// It had been made before the move arrived, and would have moved the item back for a moment.
    @Test func whatAFeedTellsFromBeforeOurOwnMoveIsNotBelieved() throws {
        let fixture = try MachineFixture()
        let item = MachineFixture.item("a", .link)
        fixture.start(with: [item])
        let machine = fixture.machine
        try fixture.rename("a", to: "b")
        machine.pass(.seconds(1))
        var moved = item
        moved.name = FileName("b")!
        machine.answer("modify", "done", .item(moved))
        let page = ChangePage(updated: [item], anchor: Anchor(rawValue: "2"))
        machine.answer("wait for changes", "a is new", .changes(page))
        machine.pass(.seconds(1))
        fixture.expect(
            """
            > 1 s later
            modify /a of version v1, move to / as b
            > modify: done
            > wait for changes: a is new
            wait for changes since 2, feed 1
            > 1 s later
            list / again, 3
            """)
        #expect(try fixture.node("a") == nil)
        #expect(try fixture.node("b") != nil)
    }

    /// Each upload of a script made it one that could not be started.
    @Test func whatAFeedTellsOfRightsIsNotBelievedWhereTheStoreKeepsNone() throws {
        let fixture = try MachineFixture([.stableIdentifiers, .changeFeed, .changePush])
        fixture.start(with: [MachineFixture.item("a", .link)])
        let machine = fixture.machine
        var told = MachineFixture.item("a", .link, version: "v2")
        told.metadata.mode = 0o644
        told.metadata.owner = 7
        machine.answer("wait for changes", "a", .changes(ChangePage(updated: [told], anchor: Anchor(rawValue: "2"))))
        machine.pass(.seconds(1))
        let id = try #require(try fixture.node("a"))
        let node = try #require(try fixture.index.read { transaction throws(Failure) in try transaction.node(id) })
        #expect(node.version == ContentVersion("v2"))
        #expect(node.owner == 0 && node.mode == 0o755)
    }
}
