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

        init() throws {
            fixture = try MachineFixture()
            fixture.start()
            let time = fixture.machine.now
            file = try fixture.index.write { [content = fixture.content] transaction throws(Failure) in
                var node = Node(
                    id: .root, kind: .file, mode: 0o644, owner: 0, group: 0, size: 0, time: time, content: .whole)
                node.isOpenForWriting = true
                let made = try transaction.insert(node)
                let entry = try transaction.insertEntry(
                    in: .root, named: FileName("log")!, node: made.id, identifier: nil)
                try transaction.setPending(Pending(subject: .entry(entry.id), since: time, due: time))
                return SharedDescriptor(try content.create(made.id, made.generation))
            }
        }

        /// A program writes to it every five seconds. The seconds after which it is sent; nil: it is not.
        func write(for seconds: Int) -> Int? {
            let machine = fixture.machine
            for passed in stride(from: 0, to: seconds, by: 5) {
                let now = machine.now
                let time = timespec(tv_sec: Int(now.rawValue / 1_000_000_000), tv_nsec: 0)
                var times = [time, time]
                futimens(file.number, &times)
                machine.pass(.seconds(5))
                if machine.take().contains("create log") { return passed + 5 }
            }
            return nil
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
}
