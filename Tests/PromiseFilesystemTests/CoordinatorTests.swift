import PromiseCoordination
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization
import Testing

@Suite struct CoordinatorTests {
    /// A conflict gives the document another node and its version is told of a moment later: whoever resolved the conflict
    /// within that moment gave the document another node again, and its presenters never heard of the version.
    @Test func whoTellsOfAChangeLateFindsWhatTheItemHasBecome() {
        let coordinator = Coordinator(clock: SystemClock(), mode: .wait)
        coordinator.replaced([ReplacedNode(NodeID(7), by: NodeID(9))], by: 100)
        coordinator.replaced([ReplacedNode(NodeID(9), by: NodeID(7))], by: 105)
        #expect(coordinator.current(NodeID(9), after: 100) == NodeID(7))
        #expect(coordinator.current(NodeID(7), after: 105) == NodeID(7))
        #expect(coordinator.current(NodeID(9), after: 106) == NodeID(9), "what happened before does not count")
        #expect(coordinator.current(NodeID(8), after: 0) == NodeID(8))
        for number in 0..<2_000 as Range<Int64> {
            coordinator.replaced([ReplacedNode(NodeID(20), by: NodeID(20 + UInt64(number)))], by: 200 + number)
        }
        #expect(coordinator.current(NodeID(9), after: 100) == NodeID(9), "only the latest are kept")
    }

    /// Whoever was inside of a claim on /a renamed it onto /b, in the middle of somebody else's claim on that.
    @Test func whoIsInsideOfOneClaimIsNotInsideOfAnother() throws {
        for mode in [CoordinationMode.wait, .refuse] {
            let coordinator = Coordinator(clock: SystemClock(), mode: mode)
            func intent(_ node: UInt64) -> Intent {
                Intent(node: NodeID(node), folders: [.root], access: .write([]))
            }
            for (node, process) in [(7, 70), (8, 80)] as [(UInt64, Int32)] {
                _ = try coordinator.claim([intent(node)], purpose: nil, process: process, timeout: nil) { _, _ in }
            }
            #expect(!coordinator.isInTheWay(of: [intent(7)], isInside: { $0 == 70 }))
            #expect(coordinator.isInTheWay(of: [intent(7), intent(8)], isInside: { $0 == 70 }))
            #expect(!coordinator.isInTheWay(of: [intent(7), intent(8)], isInside: { $0 == 70 || $0 == 80 }))
        }
    }

    /// Between asking what the item has become and telling of it, it became another node once more, and nobody was told.
    @Test func whoShowsAnItemIsToldWhateverItHasBecomeAtThatMoment() throws {
        let coordinator = Coordinator(clock: SystemClock(), mode: .wait)
        let told = Mutex<[Coordinator.PresenterEvent]>([])
        _ = try coordinator.addPresenter(of: NodeID(7), in: [.root], purpose: nil) { event in
            told.withLock { $0.append(event) }
            return true
        }
        coordinator.replaced([ReplacedNode(NodeID(7), by: NodeID(9))], by: 100)
        coordinator.replaced([ReplacedNode(NodeID(9), by: NodeID(7))], by: 105)
        coordinator.happened(.version(.gained, FileName("a")!), to: NodeID(9), after: 100, in: [.root])
        let isTold = told.withLock { events in
            events.contains { if case .tell(.version(.gained, _)) = $0 { true } else { false } }
        }
        #expect(isTold)
    }
}
