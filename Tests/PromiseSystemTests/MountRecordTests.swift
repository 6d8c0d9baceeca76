import Glibc
import PromiseCore
import PromiseSystem
import Testing

/// The record is memory that one process leaves to the next; here both are this one, on the same memory.
@Suite final class MountRecordTests {
    private let memory: Descriptor

    init() throws {
        let path = "/tmp/promisefs-record-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        memory = try Descriptor.open(Array(path.utf8), flags: O_RDWR | O_CREAT | O_EXCL, label: "test.record")
        unlink(path)
    }

    private func record(takesOver: Bool = true) throws -> MountRecord {
        try MountRecord(descriptor: memory.number, takesOver: takesOver)
    }

    private func open(_ handle: UInt64, backing: Int32? = nil) -> MountRecord.Open {
        MountRecord.Open(
            handle: handle, node: NodeID(handle + 100), generation: Generation(3), request: handle * 2,
            backing: backing.map { BackingID(rawValue: $0) }, isWritable: handle % 2 == 0)
    }

    @Test func aSuccessorFindsWhatIsStillOpen() throws {
        let first = try record(takesOver: false)
        let positions = (1...5).map { first.note(open(UInt64($0), backing: $0 == 3 ? 7 : nil)) }
        first.clear(try #require(positions[1]))
        let successor = try record()
        #expect(successor.inherited.map(\.open) == [open(1), open(3, backing: 7), open(4), open(5)])
        // What it notes takes the place that is free, and clears nothing else.
        #expect(successor.note(open(9)) == positions[1])
        #expect(try record().inherited.map(\.open) == [open(1), open(9), open(3, backing: 7), open(4), open(5)])
    }

    @Test func aHandleHasANumberThatNoneHadBefore() throws {
        let first = try record(takesOver: false)
        let numbers = [first.nextHandle(), first.nextHandle()]
        #expect(try !numbers.contains(record().nextHandle()))
    }

    @Test func aRequestCountsOnlyIfTheIndexHasItsBody() throws {
        let first = try record(takesOver: false)
        first.carry(10, body: 1)
        first.carry(12, body: 2)
        first.carry(14, body: 3)
        first.withdraw(12)
        let successor = try record()
        #expect(successor.carriedOut(lastBody: 2) == [10])
        #expect(successor.carriedOut(lastBody: 3) == [10, 14])
    }

    @Test func whoDoesNotTakeOverLeavesNothing() throws {
        let first = try record(takesOver: false)
        _ = first.note(open(1))
        first.carry(10, body: 1)
        let other = try record(takesOver: false)
        #expect(other.inherited.isEmpty)
        #expect(try record().inherited.isEmpty)
        #expect(try record().carriedOut(lastBody: 9).isEmpty)
    }

    @Test func onlyTheLastRequestsAreRemembered() throws {
        let first = try record(takesOver: false)
        for request in 1...5_000 { first.carry(UInt64(request), body: 1) }
        let known = try record().carriedOut(lastBody: 1)
        #expect(known.count == 4_096)
        #expect(known.contains(5_000) && !known.contains(904))
    }
}
