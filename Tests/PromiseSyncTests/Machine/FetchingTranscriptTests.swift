import PromiseCore
import PromiseProvider
import PromiseSync
import Testing

@Suite struct FetchingTranscriptTests {
    private let files = (10..<50).map { NodeID(rawValue: $0) }

    @Test func noMoreThanSoManyFilesComeAtATime() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.happen("forty are wanted", .fetchesWanted(files))
        let begun = machine.take().split(separator: "\n").filter { $0.hasPrefix("fetch ") }
        #expect(begun.count == BackgroundFetches.runningMax)
        machine.happen("one is here", .fetchEnded(files[0], .success(())))
        let refusal = Failure(.refused, "it may not be read")
        machine.happen("one cannot be had", .fetchEnded(files[1], .failure(refusal)))
        fixture.expect(
            """
            > one is here
            fetch 42
            > one cannot be had
            fetch 43
            """)
    }

    @Test func whatTheCutLineInterruptedBeginsAgain() throws {
        let fixture = try MachineFixture()
        fixture.start()
        let machine = fixture.machine
        machine.happen("one is wanted", .fetchesWanted([files[0]]))
        let cut = ProviderError(.offline, "cut")
        machine.happen("it finds the line cut", .fetchTroubled(files[0], cut))
        machine.happen("it ends", .fetchEnded(files[0], .failure(Failure(.offline, "cut"))))
        machine.pass(.seconds(2))
        machine.answer("ask for the root", "here", .item(MachineFixture.rootItem))
        fixture.expect(
            """
            > one is wanted
            fetch 10
            > it finds the line cut
            say: the provider cannot be reached (cut)
            end all fetches: cut
            > it ends
            > 2 s later
            ask for the root
            > ask for the root: here
            say: the provider is back
            no longer ask for changes, feed 1
            ask for the anchor, feed 2
            list / again, 3
            fetch 10
            """)
    }

    @Test func aFetchThatWaitsForAReaderEndsWhenThereIsNone() throws {
        let fixture = try MachineFixture()
        fixture.start()
        fixture.machine.happen("it waits", .hydrationPaused(files[0]))
        fixture.expect(
            """
            > it waits
            give up fetching 10
            """)
    }
}
