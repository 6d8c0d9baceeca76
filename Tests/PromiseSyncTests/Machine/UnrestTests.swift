import Glibc
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import Testing

/// Files that are never quiet.
@Suite struct UnrestTests {
    private struct Log {
        let fixture: MachineFixture
        let file: SharedDescriptor

        /// `isKnown`: to the provider, in an earlier version.
        init(isKnown: Bool = false) throws {
            fixture = try MachineFixture()
            fixture.start(with: isKnown ? [MachineFixture.item("log")] : [])
            let time = fixture.machine.now
            let known = try fixture.node("log")
            file = try fixture.index.write { [content = fixture.content] transaction throws(Failure) in
                var node = Node(
                    id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 0, time: time, content: .whole)
                node.isOpenForWriting = true
                if let known, let placeholder = try transaction.node(known) {
                    node = placeholder
                    (node.content, node.isOpenForWriting) = (.whole, true)
                    node.edits += 1
                    try transaction.update(node)
                } else {
                    node = try transaction.insert(node)
                    _ = try transaction.insertEntry(in: .root, named: FileName("log")!, node: node.id, identifier: nil)
                }
                for entry in try transaction.entries(of: node.id) {
                    try transaction.setPending(Pending(subject: .entry(entry.id), since: time, due: time))
                }
                return SharedDescriptor(try content.create(node.id, node.generation))
            }
        }

        /// A program writes to it every five seconds. The seconds after which it is sent; nil: it is not.
        func write(for seconds: Int, until call: String = "create log") -> Int? {
            let machine = fixture.machine
            for passed in stride(from: 0, to: seconds, by: 5) {
                let now = machine.now
                let time = timespec(tv_sec: Int(now.rawValue / 1_000_000_000), tv_nsec: 0)
                var times = [time, time]
                futimens(file.number, &times)
                machine.pass(.seconds(5))
                if machine.take().contains(call) { return passed + 5 }
            }
            return nil
        }

        func rename(to name: String) throws {
            let now = fixture.machine.now
            try fixture.index.write { transaction throws(Failure) in
                guard var entry = try transaction.entry(in: .root, named: FileName("log")!) else { return }
                entry.name = FileName(name)!
                try transaction.update(entry)
                try transaction.renewPending(entry.id, PendingRenewal(now: now, due: now, bound: .seconds(600)))
            }
        }
    }

    /// It waited for ten seconds of quiet for ever.
    @Test func aFileThatIsOpenAndNeverQuietIsSentAfterTenMinutes() throws {
        let log = try Log()
        let sent = try #require(log.write(for: 900))
        #expect(sent >= 600 && sent <= 620)
    }

    /// It is not sent again and again.
    @Test func whatIsWrittenToWhileItIsSentIsTriedEverLessOften() throws {
        let log = try Log()
        let torn = ProviderError(.sourceChanged, "the file was written to while it was being sent")
        for bound in [600, 1_200, 2_400] {
            let sent = try #require(log.write(for: 3_000))
            #expect(sent >= bound - 10 && sent <= bound + 20, "\(sent) of \(bound)")
            #expect(log.fixture.machine.answer("create log", "torn", .failure(torn)))
            _ = log.fixture.machine.take()
        }
    }

    /// Its content began to wait anew.
    @Test func aMoveWithoutContentIsNoSendingOfIt() throws {
        let log = try Log(isKnown: true)
        let machine = log.fixture.machine
        let first = try #require(log.write(for: 900, until: "modify /log of version v1, content"))
        #expect(first >= 590 && first <= 620)
        let torn = ProviderError(.sourceChanged, "the file was written to while it was being sent")
        #expect(machine.answer("modify /log", "torn", .failure(torn)))
        _ = machine.take()
        #expect(log.write(for: 1_000, until: "modify") == nil)
        try log.rename(to: "log.1")
        #expect(log.write(for: 20, until: "modify /log of version v1, move to / as log.1") != nil)
        var moved = MachineFixture.item("log")
        moved.name = FileName("log.1")!
        #expect(machine.answer("modify /log", "moved", .item(moved)))
        let sent = try #require(log.write(for: 900, until: "modify /log.1 of version v1, content"))
        #expect(sent <= 220, "\(sent)")
    }
}
