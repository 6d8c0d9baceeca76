import PromiseCore
import PromiseIndex
import PromiseSync
import Testing

@Suite struct BlockedWorkTests {
    private func work(_ number: Int) -> Pending.Subject { .deletion(ItemIdentifier("\(number)")) }
    private func folder(_ number: Int) -> NodeID { NodeID(rawValue: UInt64(number)) }

    @Test func whatWaitsForAFolderIsKnownUntilThatIsMade() {
        var blocked = BlockedWork()
        blocked.add(work(1), on: folder(7), at: .seconds(1))
        blocked.add(work(2), on: folder(7), at: .seconds(2))
        #expect(blocked.subjects(of: folder(7)) == [work(1), work(2)])
        blocked.remove(folder(7))
        #expect(blocked.subjects(of: folder(7)).isEmpty && blocked.count == 0)
    }

    /// They were remembered for as long as the daemon ran.
    @Test func foldersThatWereRemovedBeforeTheyWereMadeAreForgotten() {
        var blocked = BlockedWork()
        for number in 1...100 { blocked.add(work(number), on: folder(number), at: .seconds(1)) }
        for time in stride(from: 5, through: 200, by: 5) { blocked.add(work(1), on: folder(1), at: .seconds(time)) }
        #expect(blocked.count == 1)
        #expect(blocked.subjects(of: folder(1)) == [work(1)])
    }
}
