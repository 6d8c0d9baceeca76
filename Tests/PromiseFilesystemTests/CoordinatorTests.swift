import Glibc
import PromiseCoordination
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import PromiseTestSupport
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
        _ = try coordinator.addPresenter(of: NodeID(7), chains: [[.root]], purpose: nil) { event in
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

    /// A folder was removed within a claim that was granted while it was being listed, to see whether it is empty.
    @Test(.timeLimit(.minutes(2))) func whoWaitedForAListingWaitsForTheClaimThatCameMeanwhile() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            await domain.provider.makeFolder(["folder"])
            let node = try await domain.node(at: ["folder"]).node
            let gate = Gate()
            await domain.provider.holdListings(at: gate)
            let isAnswered = Atomic<Bool>(false)
            async let removal: Void = {
                try await domain.removeFolder(["folder"])
                isAnswered.store(true, ordering: .sequentiallyConsistent)
            }()
            try await Task.sleep(for: .milliseconds(100))
            let intent = Intent(node: node, folders: [.root], access: .write([]))
            let claim = try domain.filesystem.coordinator.claim(
                [intent], purpose: nil, process: getpid(), timeout: nil) { _, _ in }
            gate.open()
            try await Task.sleep(for: .milliseconds(200))
            let isRemoved = isAnswered.load(ordering: .sequentiallyConsistent)
            #expect(!isRemoved)
            domain.filesystem.coordinator.release(claim)
            try await removal
        }
    }

    /// A document was saved by renaming between the look at its name and the entering of a presenter or claim of it: the one was
    /// deaf from then on, and the other was told that the document is gone.
    @Test func whoEntersWhatWasSavedMeanwhileEntersWhatItHasBecome() throws {
        let coordinator = Coordinator(clock: SystemClock(), mode: .wait)
        coordinator.beginEntering()
        #expect(coordinator.isActive, "what items become is remembered")
        let told = Mutex<[Coordinator.PresenterEvent]>([])
        // Looked up as of change 99, when it was node 7.
        coordinator.replaced([ReplacedNode(NodeID(7), by: NodeID(9))], by: 100)
        _ = try coordinator.addPresenter(of: NodeID(7), chains: [[.root]], purpose: nil, since: 100) { event in
            told.withLock { $0.append(event) }
            return true
        }
        let intent = Intent(node: NodeID(7), folders: [.root], access: .write([]))
        let claim = try coordinator.claim([intent], purpose: nil, timeout: nil, since: 100) { _, _ in }
        coordinator.endEntering()
        #expect(coordinator.nodes(of: claim) == [NodeID(9)])
        let isAsked = told.withLock { events in
            events.contains { if case .ask(_, _, let node) = $0 { node == NodeID(9) } else { false } }
        }
        #expect(isAsked)
    }
}
