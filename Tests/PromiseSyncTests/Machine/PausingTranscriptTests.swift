import PromiseCore
import PromiseSync
import Testing

@Suite struct PausingTranscriptTests {
    @Test func whatIsPausedTellsAndFetchesNothingUntilItGoesOn() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        let files = [NodeID(rawValue: 10), NodeID(rawValue: 11)]
        machine.happen("one is wanted", .fetchesWanted([files[0]]))
        machine.happen("a pause", .pauseWanted(true, Waiter(number: 2)))
        let ended = Failure(.interrupted, "nobody wants it now")
        machine.happen("it ends", .fetchEnded(files[0], .failure(ended)))
        try fixture.make("a", .link)
        machine.happen("another is wanted", .fetchesWanted([files[1]]))
        machine.happen("a look", .lookWanted(everything: false))
        machine.pass(.seconds(60))
        machine.happen("on", .pauseWanted(false, Waiter(number: 3)))
        fixture.expect(
            """
            > one is wanted
            fetch 10
            > a pause
            pause
            no longer fetch 10
            reply to 2: it is there
            > it ends
            > another is wanted
            > a look
            note open writes
            list / again, 3
            > 60 s later
            make room
            > on
            go on
            reply to 3: it is there
            note open writes
            fetch 10
            fetch 11
            create a in /
            """)
    }
}
