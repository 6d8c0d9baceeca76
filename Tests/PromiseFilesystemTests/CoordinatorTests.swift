import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Testing

@Suite struct CoordinatorTests {
    /// A conflict gives the document another node and its version is told of a moment later: whoever resolved the conflict
    /// within that moment gave the document another node again, and its presenters never heard of the version.
    @Test func whoTellsOfAChangeLateFindsWhatTheItemHasBecome() {
        let coordinator = Coordinator(clock: SystemClock(), mode: .wait)
        coordinator.replaced([NodeID(7): NodeID(9)], by: 100)
        coordinator.replaced([NodeID(9): NodeID(7)], by: 105)
        #expect(coordinator.current(NodeID(9), after: 100) == NodeID(7))
        #expect(coordinator.current(NodeID(7), after: 105) == NodeID(7))
        #expect(coordinator.current(NodeID(9), after: 106) == NodeID(9), "what happened before does not count")
        #expect(coordinator.current(NodeID(8), after: 0) == NodeID(8))
        for number in 0..<2_000 as Range<Int64> {
            coordinator.replaced([NodeID(20): NodeID(20 + UInt64(number))], by: 200 + number)
        }
        #expect(coordinator.current(NodeID(9), after: 100) == NodeID(9), "only the latest are kept")
    }
}
