import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Content files made ahead, where the disk is slow to make them.
@Suite(.timeLimit(.minutes(5))) struct SpareFilesTests {
    /// Every look at it is a second later: whatever is measured with it was slow.
    private final class LateClock: TimeSource {
        private let looks = Atomic<Int>(0)
        func now() -> Timestamp { .zero }
        func uptime() -> Duration { .seconds(looks.wrappingAdd(1, ordering: .relaxed).newValue) }
    }

    private let folder: TemporaryFolder
    private let index: PromiseIndex.Index
    private let content: ContentStore
    private let spares: SpareFiles

    init() throws {
        folder = try TemporaryFolder("spares")
        index = try Index(path: folder.path("index.sqlite"))
        content = try ContentStore(folder: folder.path("content"))
        spares = SpareFiles(
            index: index, content: content, clock: LateClock(), workers: BlockingPool(name: "test", threads: 1))
    }

    private func eventually(_ condition: () throws -> Bool) async throws -> Bool {
        for _ in 0..<2_000 {
            if try condition() { return true }
            try await Task.sleep(for: .milliseconds(5))
        }
        return false
    }

    private func fileCount() throws -> Int {
        var count = 0
        try content.forEachFile { _, _ in count += 1 }
        return count
    }

    @Test func aSlowDiskHasFilesMadeAheadUntilTheEnd() async throws {
        #expect(spares.take() == nil)
        for _ in 0..<SpareFiles.slowCountMin { spares.note(making: SpareFiles.slow) }
        #expect(try await eventually { try fileCount() == SpareFiles.countMax })
        // The last one is there before it can be taken.
        #expect(try await eventually { spares.take() != nil })
        let spare = try #require(spares.take())
        #expect(spares.mayHold(spare.node))
        let node = Node(id: .root, kind: .file, mode: 0o600, owner: 0, group: 0, time: .zero, content: .whole)
        let (made, next) = try index.write { transaction throws(Failure) in
            (try transaction.insert(node, as: spare.node), try transaction.insert(node))
        }
        #expect(made.id == spare.node && made.generation == Generation(0))
        #expect(next.id > spare.node)
        #expect(try content.status(spare.node, Generation(0))?.size == 0)
        spares.stop()
        // The two that were taken belong to others.
        #expect(try await eventually { try fileCount() == 2 })
        #expect(spares.take() == nil)
    }

    @Test func aDiskThatIsQuickEnoughHasNone() throws {
        for _ in 0..<100 {
            spares.note(making: SpareFiles.slow)
            spares.note(making: .zero)
        }
        #expect(spares.take() == nil)
        #expect(try fileCount() == 0)
    }
}
