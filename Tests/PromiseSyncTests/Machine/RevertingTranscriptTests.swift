import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import Testing

/// Changes that are given up.
@Suite struct RevertingTranscriptTests {
    private func read(_ name: String, _ fixture: MachineFixture) throws -> (Pending.Subject, Node) {
        try fixture.index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: .root, named: FileName(name)!),
                let node = try transaction.node(entry.node)
            else { throw Failure(.notFound, "there is no \(name)") }
            return (.entry(entry.id), node)
        }
    }

    /// What an editor does.
    private func save(_ name: String, _ fixture: MachineFixture) throws {
        var (_, node) = try read(name, fixture)
        node.edits += 1
        try fixture.index.write { [node] transaction throws(Failure) in try transaction.update(node) }
    }

    private func giveUp(_ name: String, kept: Node?, _ fixture: MachineFixture) throws -> String {
        let (subject, _) = try read(name, fixture)
        fixture.machine.happen(
            "it is given up", .revertWanted(subject, kept: kept, Waiter(number: 7)))
        return fixture.machine.take()
    }

    /// A file that an editor saved while others were given up went with them, and nothing of it was kept.
    @Test func whatIsWrittenMeanwhileIsNotGivenUp() throws {
        let fixture = try MachineFixture()
        fixture.start(with: [MachineFixture.item("old")])
        try fixture.make("new", .file)
        for name in ["new", "old"] {
            try save(name, fixture)
            let (_, before) = try read(name, fixture)
            try save(name, fixture)
            let (_, now) = try read(name, fixture)
            for kept in [nil, before] {
                let text = try giveUp(name, kept: kept, fixture)
                #expect(text.contains("reply to 7: it was written to meanwhile"), "\(text)")
                #expect(try read(name, fixture).1 == now)
            }
            let text = try giveUp(name, kept: now, fixture)
            #expect(text.contains("reply to 7: it is there"), "\(text)")
        }
        #expect(try fixture.node("new") == nil)
    }
}
