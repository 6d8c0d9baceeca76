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
}
