import PromiseCoordination
import PromiseCore
import Testing

private func intent(_ access: Access) -> Intent { Intent(node: NodeID(3), folders: [.root], access: access) }

private let read = Access.read([])
private let write = Access.write([])

/// Claims for which it is said that others wait.
@Suite struct OverdueClaimTests {
    @Test func whoIsWaitedForIsSaidAfterItsPatienceAndAgain() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let guest = table.claim([intent(read)], patience: .seconds(5))
        #expect(table.watchWaiters(now: .seconds(1)) == nil, "nobody waits")
        let reader = table.claim([intent(read)])
        let writer = table.claim([intent(write)])
        #expect(table.takeActions() == [.granted(guest), .granted(reader)])
        #expect(table.watchWaiters(now: .seconds(10)) == .seconds(15))
        #expect(table.watchWaiters(now: .seconds(12)) == .seconds(15), "it began when somebody came to wait")
        #expect(table.nextDeadline == .seconds(15))
        table.tick(now: .seconds(15))
        #expect(table.takeActions() == [.overdue(guest)])
        table.tick(now: .seconds(20))
        #expect(table.takeActions() == [.overdue(guest)], "the other reader may hold it for as long as it likes")
        table.release(guest, now: .seconds(20))
        table.release(reader, now: .seconds(20))
        #expect(table.takeActions() == [.granted(writer)])
        #expect(table.watchWaiters(now: .seconds(20)) == nil)
    }

    @Test func whoGaveUpWaitingIsNoReason() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let guest = table.claim([intent(read)], patience: .seconds(5))
        let writer = table.claim([intent(write)], deadline: .seconds(3))
        #expect(table.watchWaiters(now: .zero) == .seconds(5))
        table.tick(now: .seconds(3))
        #expect(table.takeActions() == [.granted(guest), .refused(writer, .timedOut)])
        #expect(table.watchWaiters(now: .seconds(3)) == nil)
        // One that waits itself holds up nobody.
        let owner = table.claim([intent(write)], now: .seconds(4))
        _ = table.claim([intent(read)], now: .seconds(4), patience: .seconds(5))
        table.release(guest, now: .seconds(4))
        #expect(table.takeActions() == [.granted(owner)])
        _ = table.claim([intent(write)], now: .seconds(4))
        #expect(table.watchWaiters(now: .seconds(4)) == nil)
    }
}
