import PromiseCore
import PromiseProvider
import PromiseSync
import Testing

@Suite struct ConnectingTranscriptTests {
    private let offline = ProviderError(.offline, "the line is cut")

    @Test func aProviderThatCannotBeReachedIsTriedEverLessOftenAndThenAllIsLookedAt() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        try fixture.open("folder", 2)
        machine.answer("wait for changes", "the line is cut", .failure(offline))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "the line is cut", .failure(offline))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        fixture.expect(
            """
            > a program opens folder
            list /folder, 3
            > wait for changes: the line is cut
            say: the provider cannot be reached (the line is cut)
            end all fetches: the line is cut
            no longer list, 3
            reply to 2: the line is cut
            > 2 s later
            ask for the root
            > ask for the root: the line is cut
            > 2 s later
            ask for the root
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 4
            """)
    }

    @Test func anotherStorageIsNotFollowed() throws {
        let fixture = try MachineFixture()
        let machine = fixture.machine
        machine.happen("start without a provider", .started(isConnected: false, patience: nil))
        machine.pass(.seconds(2))
        let other = MachineFixture.item("other", .folder)
        machine.answer("ask for the root", "of another storage", .item(other))
        machine.pass(.seconds(2))
        fixture.expect(
            """
            > start without a provider
            say: the provider cannot be reached (the provider could not be reached at the start)
            end all fetches: the provider could not be reached at the start
            make room
            > 2 s later
            ask for the root
            > ask for the root: of another storage
            end all fetches: 'store:' is not the storage this state directory was made for: choose another --state-dir or --domain
            > 2 s later
            ask for the root
            """)
    }

    /// A storage that came in the place of the right one, as of a disk that was exchanged, was not looked at again.
    @Test func theRightStorageIsFoundAfterAnotherOneWasMet() throws {
        let fixture = try MachineFixture()
        let machine = fixture.machine
        machine.happen("start without a provider", .started(isConnected: false, patience: nil))
        machine.pass(.seconds(2))
        let other = MachineFixture.item("other", .folder)
        for _ in 1...3 {
            machine.answer("ask for the root", "of another storage", .item(other))
            machine.pass(.seconds(30))
        }
        _ = machine.take()
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        #expect(machine.take().contains("say: the provider is back"))
    }

    /// What `status` showed was past for as long as a try was not answered.
    @Test func theNextTryIsNeverInThePast() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.answer("wait for changes", "the line is cut", .failure(offline))
        for _ in 1...20 {
            let next = try #require(machine.nextTry)
            #expect(next >= machine.now, "\(next) \(machine.now)")
            machine.pass(.seconds(5))
        }
    }

    @Test func aSilentProviderIsOfflineAndNoMoreThanThreeCallsHang() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.silence = .seconds(10)
        machine.happen("whoever waits hears nothing", .silenceNoticed)
        machine.pass(.seconds(6))
        machine.pass(.seconds(200))
        machine.happen("somebody wants to know", .lookWanted(everything: false))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        fixture.expect(
            """
            > whoever waits hears nothing
            ask for the root
            > 6 s later
            no longer ask for the root
            say: the provider cannot be reached (the provider does not answer)
            end all fetches: the provider does not answer
            make room
            ask for the root
            > 200 s later
            no longer ask for the root
            make room
            ask for the root
            no longer ask for the root
            make room
            make room
            make room
            make room
            make room
            make room
            make room
            > somebody wants to know
            note open writes
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 3
            """)
    }

    /// Somebody had asked whether the provider is back, and it was, before the next try was due. That
    /// one failed, and as a try was under way when the provider was away again none was planned: it
    /// stayed away for good.
    @Test func aTryThatFailsAfterTheProviderCameBackIsNotTheLast() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.answer("wait for changes", "the line is cut", .failure(offline))
        machine.happen("somebody wants to know", .lookWanted(everything: false))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "the line is cut", .failure(offline))
        _ = machine.take()
        machine.pass(.seconds(3))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        let done = machine.take()
        #expect(done.contains("ask for the root") && done.contains("say: the provider is back"), "\(done)")
    }

    private let busy = ProviderError(.retryAfter(.seconds(5)), "the server answers 503 (busy)")

    /// It was online, and each call waited to its own end.
    @Test func aProviderThatAnswersEverythingWronglyIsAway() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        machine.pass(.seconds(10))
        machine.lastGood = .seconds(1)
        try fixture.open("folder", 2)
        machine.answer("list", "busy", .failure(busy))
        machine.answer("ask for the root", "busy", .failure(busy))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "busy", .failure(busy))
        machine.pass(.seconds(2))
        _ = machine.take()
        machine.answer("ask for the root", "busy", .failure(busy))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        fixture.expect(
            """
            > ask for the root: busy
            say: the provider cannot be reached (the server answers 503 (busy))
            end all fetches: the server answers 503 (busy)
            > 2 s later
            ask for the root
            make room
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 4
            """)
    }

    /// Of one folder, and of a root that alone has no answer of use.
    @Test func oneItemThatIsAnsweredWronglyMakesNoProviderAway() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        machine.pass(.seconds(10))
        machine.lastGood = .seconds(1)
        try fixture.open("folder", 2)
        machine.answer("list", "busy", .failure(busy))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        try fixture.open("folder", 3)
        machine.answer("list", "busy", .failure(busy))
        machine.answer("ask for the root", "busy", .failure(busy))
        machine.pass(.seconds(2))
        machine.lastGood = .seconds(18)
        for _ in 0..<3 {
            machine.answer("ask for the root", "busy", .failure(busy))
            machine.pass(.seconds(2))
        }
        #expect(!machine.take().contains("cannot be reached"))
    }

    private let gone = ProviderError(.notFound, "the server answers 404 (not there)")

    /// A server in the place of ours, which knows nothing: everything went away here.
    @Test func aStorageThatSaysThatEverythingIsGoneIsAway() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        machine.lastGood = .seconds(1)
        try fixture.open("folder", 2)
        machine.answer("list", "gone", .failure(gone))
        machine.answer("find", "gone", .failure(gone))
        for _ in 0..<3 {
            machine.answer("ask for the root", "gone", .failure(gone))
            machine.pass(.seconds(2))
        }
        let done = machine.take()
        #expect(done.contains("cannot be reached (the server answers 404 (not there))") && !done.contains("show"), "\(done)")
        #expect(try fixture.node("folder") != nil)
    }

    @Test func whatIsGoneIsGoneWhereTheRootIsThere() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("folder", .folder)])
        let machine = fixture.machine
        machine.lastGood = .seconds(1)
        try fixture.open("folder", 2)
        machine.answer("list", "gone", .failure(gone))
        machine.answer("find", "gone", .failure(gone))
        #expect(try fixture.node("folder") != nil)
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        machine.pass(.seconds(1))
        #expect(try fixture.node("folder") == nil)
    }

    @Test func theFirstAnswerMayTakeItsTime() throws {
        let fixture = try MachineFixture()
        let machine = fixture.machine
        machine.happen("start", .started(isConnected: false, patience: .seconds(10)))
        machine.happen(
            "a program opens the root", .listingWanted(.root, isWhole: true, Waiter(number: 1)))
        machine.pass(.seconds(9))
        machine.happen(
            "the root is there", .rootAnswered(number: 0, .success(MachineFixture.rootItem)))
        fixture.expect(
            """
            > start
            make room
            > a program opens the root
            list /, 1
            > 9 s later
            make room
            > the root is there
            say: the provider is back
            no longer ask for changes, feed 0
            ask for the anchor, feed 1
            """)
    }
}
