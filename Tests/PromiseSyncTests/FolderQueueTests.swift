import PromiseCore
import PromiseSync
import Testing

/// In which order folders are looked at again.
@Suite struct FolderQueueTests {
    private func folder(_ name: String) -> ItemIdentifier { ItemIdentifier(name) }

    private func all(_ queue: inout FolderQueue, at now: Duration) -> [ItemIdentifier] {
        var result: [ItemIdentifier] = []
        while let next = queue.next(at: now) { result.append(next) }
        return result
    }

    @Test func foldersComeByTheirTimeAndThenInTheirOrder() {
        var queue = FolderQueue()
        queue.add(folder("late"), at: .seconds(3))
        queue.add(folder("a"), at: .seconds(1))
        queue.add(folder("b"), at: .seconds(1))
        #expect(queue.nextDue() == .seconds(1))
        #expect(all(&queue, at: .seconds(2)) == [folder("a"), folder("b")])
        #expect(queue.nextDue() == .seconds(3))
        #expect(!queue.isEmpty)
    }

    @Test func aFolderIsInTheQueueOnceAtItsEarliestTime() {
        var queue = FolderQueue()
        for due in [5, 2, 4] { queue.add(folder("a"), at: .seconds(due)) }
        #expect(queue.nextDue() == .seconds(2))
        #expect(all(&queue, at: .seconds(9)) == [folder("a")])
        #expect(queue.isEmpty)
        #expect(queue.nextDue() == nil)
    }

    @Test func whatIsUsedComesFirstOfWhatIsDue() {
        var queue = FolderQueue()
        for number in 0..<100 { queue.add(folder("\(number)"), at: .seconds(1)) }
        queue.add(folder("used"), at: .seconds(2), isUsed: true)
        queue.add(folder("70"), at: .seconds(2), isUsed: true)
        #expect(queue.next(at: .milliseconds(1500)) == folder("70"))
        #expect(queue.next(at: .milliseconds(1500)) == folder("0"))
        #expect(queue.next(at: .seconds(2)) == folder("used"))
        #expect(all(&queue, at: .seconds(2)).count == 98)
    }

    @Test func postponingMovesWhatIsInTheQueueOnly() {
        var queue = FolderQueue()
        queue.add(folder("a"), at: .seconds(1), isUsed: true)
        queue.postpone(folder("a"), to: .seconds(4))
        queue.postpone(folder("b"), to: .seconds(4))
        #expect(queue.next(at: .seconds(3)) == nil)
        #expect(all(&queue, at: .seconds(4)) == [folder("a")])
    }

    /// A look that has time was waited for like any other.
    @Test func nobodyWaitsForALookAtLeisureUnlessForAnotherReason() {
        var queue = FolderQueue()
        queue.add(folder("a"), at: .seconds(10), isLeisurely: true)
        queue.add(folder("b"), at: .seconds(9), isLeisurely: true)
        #expect(queue.nextAwaited() == nil && queue.nextDue() == .seconds(9))
        queue.add(folder("a"), at: .seconds(20))
        #expect(queue.nextAwaited() == .seconds(10))
        queue.add(folder("a"), at: .seconds(5), isLeisurely: true)
        #expect(queue.nextAwaited() == .seconds(5))
        #expect(all(&queue, at: .seconds(9)) == [folder("a"), folder("b")])
        queue.add(folder("c"), at: .seconds(10), isLeisurely: true)
        queue.hasten(to: .seconds(1))
        #expect(queue.nextAwaited() == .seconds(1))
        #expect(all(&queue, at: .seconds(1)) == [folder("c")] && queue.isEmpty)
    }
}
