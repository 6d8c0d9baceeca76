import Glibc
import PromiseCore
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// Fetched bytes and bytes written here meet in one file while both are on their way.
@Suite(.timeLimit(.minutes(2))) struct LandingTests {
    private static let size: UInt64 = 4 << 20
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("landing") }

    private func job() throws -> HydrationJob {
        let file = try Descriptor.open(folder.path("file"), flags: O_RDWR | O_CREAT, mode: 0o600, label: "test.open")
        return HydrationJob(
            node: NodeID(2), generation: Generation(0), version: ContentVersion("1"), modificationTime: .zero,
            file: SharedDescriptor(file), plan: HydrationPlan(size: Self.size, present: ByteRangeSet()))
    }

    @Test func aWriteWaitsForTheBytesThatLandInItsPlace() throws {
        let job = try job()
        let order = Monitor([String]())
        let fetch = OwnedThread(name: "fetch") {
            _ = try? job.arrived(ByteRange(0, 1 << 20)) { gap in
                order.update { $0.append("landing") }
                usleep(200_000)
                order.update { $0.append("landed") }
                return gap.count
            }
        }
        _ = order.wait { $0.isEmpty ? nil : true }
        // Elsewhere nothing is waited for.
        _ = job.claim(ByteRange(2 << 20, 3 << 20))
        order.update { $0.append("elsewhere") }
        _ = job.claim(ByteRange(4096, 8192))
        order.update { $0.append("here") }
        fetch.join()
        #expect(order.withLock { $0 } == ["landing", "elsewhere", "landed", "here"])
    }

    @Test func whatWasWrittenHereIsNotFetched() throws {
        let job = try job()
        _ = job.claim(ByteRange(4096, 8192))
        let gaps = Monitor([ByteRange]())
        let stored = try job.arrived(ByteRange(0, 16384)) { gap in
            gaps.update { $0.append(gap) }
            return gap.count
        }
        #expect(gaps.withLock { $0 } == [ByteRange(0, 4096), ByteRange(8192, 16384)])
        #expect(stored == 12288)
    }

    /// The file may belong to another job as soon as this one has ended.
    @Test func nothingLandsAfterTheEnd() throws {
        let job = try job()
        let isLanding = Monitor(false)
        let isOver = Monitor(false)
        let fetch = OwnedThread(name: "fetch") {
            _ = try? job.arrived(ByteRange(0, 1 << 20)) { gap in
                isLanding.update { $0 = true }
                usleep(100_000)
                #expect(isOver.withLock { !$0 })
                return gap.count
            }
        }
        _ = isLanding.wait { $0 ? true : nil }
        job.end(.success(()))
        isOver.update { $0 = true }
        #expect(throws: ProviderError.self) { try job.arrived(ByteRange(1 << 20, 2 << 20)) { $0.count } }
        fetch.join()
    }
}
