import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

/// Names that another machine gave to items for a moment.
@Suite struct AsideNameTests {
    /// The item as it is while another machine, whose clock is ahead by so much, exchanges it with another one.
    private func aside(_ item: Item, _ machine: MachineTranscript, clockAhead lead: Duration) -> Item {
        var aside = item
        let time = machine.now.advanced(by: lead).rawValue
        aside.name = FileName(".promisefs-moving-\(time)-1-\(item.name.display)")!
        return aside
    }

    /// It was moved back at once, in the middle of the exchange, which became a conflict.
    @Test(arguments: [-7_200, -120, 0, 120, 7_200])
    func aMoveOfAMachineWithAnotherClockIsWaitedForForAMinute(lead: Int) throws {
        let fixture = try MachineFixture()
        let item = MachineFixture.item("a", .link)
        fixture.start(with: [item])
        let machine = fixture.machine
        let moving = aside(item, machine, clockAhead: .seconds(lead))
        fixture.tellNews()
        machine.pass(.seconds(1))
        #expect(machine.answer("list / again", "it is on its way", .items([moving], isLast: true)))
        machine.pass(.seconds(55))
        let before = machine.take()
        #expect(!before.contains("modify") && !before.contains("is ended here"), "\(before)")
        machine.pass(.seconds(10))
        let after = machine.take()
        #expect(after.contains("is ended here") && after.contains("move to / as a"), "\(after)")
    }

    /// A name that others have given since is another move.
    @Test func eachNameIsWaitedForForAMinute() {
        var asides = AsideNames()
        let (one, two) = (FileName("one")!, FileName("two")!)
        let item = ItemIdentifier("item")
        asides.saw(one, of: item, at: .seconds(10))
        asides.saw(one, of: item, at: .seconds(40))
        #expect(asides.isAwaited)
        #expect(!asides.isOverdue(one, of: item, at: .seconds(69)))
        #expect(asides.isOverdue(one, of: item, at: .seconds(70)))
        #expect(!asides.isOverdue(two, of: item, at: .seconds(70)))
        asides.saw(two, of: item, at: .seconds(70))
        #expect(!asides.isOverdue(two, of: item, at: .seconds(100)))
        asides.forget(item)
        #expect(asides.count == 0)
    }

    /// What others moved on in time is not remembered for good, however much it was.
    @Test func namesThatAreGoneAreForgotten() {
        var asides = AsideNames()
        for number in 0..<10_000 {
            asides.saw(FileName("name")!, of: ItemIdentifier("\(number)"), at: .zero)
            #expect(asides.count <= 4_096)
        }
        asides.saw(FileName("name")!, of: ItemIdentifier("late"), at: .seconds(200))
        asides.due(at: .seconds(300))
        #expect(asides.count == 1 && !asides.isAwaited)
    }
}
