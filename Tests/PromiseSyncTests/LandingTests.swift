import Glibc
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// Fetched bytes and bytes written here meet in one file while both are on their way.
@Suite(.timeLimit(.minutes(2))) struct LandingTests {
    private static let size: UInt64 = 4 << 20
    private static let node = Node(
        id: NodeID(2), kind: .file, mode: 0o644, owner: 0, group: 0, time: .zero)
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("landing") }

    private func job(_ generation: Generation = Generation(0)) throws -> HydrationJob {
        let file = try Descriptor.open(folder.path("file"), flags: O_RDWR | O_CREAT, mode: 0o600, label: "test.open")
        return HydrationJob(
            node: NodeID(2), generation: generation, version: ContentVersion("1"), modificationTime: .zero,
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
        let elsewhere = try #require(job.claim(ByteRange(2 << 20, 3 << 20)))
        order.update { $0.append("elsewhere") }
        let here = try #require(job.claim(ByteRange(4096, 8192)))
        order.update { $0.append("here") }
        fetch.join()
        elsewhere.withdraw()
        here.withdraw()
        #expect(order.withLock { $0 } == ["landing", "elsewhere", "landed", "here"])
    }

    /// A power cut took it, and zeros were uploaded over the provider's version.
    @Test func whatWasFetchedSinceTheFsyncDoesNotCountAsOnTheDisk() throws {
        let job = try job()
        _ = try job.arrived(ByteRange(0, 16384)) { $0.count }
        let (written, fetched) = (ByteRange(4096, 8192), ByteRange(0, 16384))
        job.fetchEnded(fetched, isWell: true)
        var synchronized = Self.node
        synchronized.durability = .begun
        let claim = try #require(job.claim(written))
        #expect(claim.ranges(after: .written(written), of: synchronized) == ByteRangeSet([written]))
        #expect(claim.ranges(after: .written(written), of: Self.node) == ByteRangeSet([fetched]))
        claim.confirm(.written(written))
    }

    /// Others overwrote the file in the middle of a fetch: what had come of theirs was kept as a piece of ours.
    @Test func whatAFetchMayHaveBroughtOfAnotherVersionIsNoPartOfAnEdit() throws {
        let job = try job()
        let (written, fetched) = (ByteRange(4096, 8192), ByteRange(0, 16384))
        _ = try job.arrived(fetched) { $0.count }
        let first = try #require(job.claim(written))
        #expect(first.ranges(after: .written(written), of: Self.node) == ByteRangeSet([written]))
        first.confirm(.written(written))
        // Given up: nobody has said of which version it is.
        job.fetchEnded(fetched, isWell: false)
        let cut = try #require(job.claimSize(12288))
        #expect(cut.ranges(after: .resized(to: 12288), of: Self.node) == ByteRangeSet([written]))
        cut.withdraw()
        job.fetchEnded(fetched, isWell: true)
        let second = try #require(job.claim(written))
        #expect(second.ranges(after: .written(written), of: Self.node) == ByteRangeSet([fetched]))
        second.confirm(.written(written))
    }

    /// The index had the one of two writes only, until the other one was noted: a kill in between lost that.
    @Test func whatIsBeingStoredByOneWriteIsStoredByTheNext() throws {
        let job = try job()
        let (first, second) = (ByteRange(0, 4096), ByteRange(8192, 12288))
        let one = try #require(job.claim(first))
        let other = try #require(job.claim(second))
        _ = one.ranges(after: .written(first), of: Self.node)
        let stored = Monitor(ByteRangeSet?.none)
        let writer = OwnedThread(name: "write") {
            let ranges = other.ranges(after: .written(second), of: Self.node)
            stored.update { $0 = ranges }
        }
        usleep(20_000)
        #expect(stored.withLock { $0 } == nil)
        one.confirm(.written(first))
        writer.join()
        #expect(stored.withLock { $0 } == ByteRangeSet([first, second]))
        other.confirm(.written(second))
    }

    @Test func whatWasWrittenHereIsNotFetched() throws {
        let job = try job()
        try #require(job.claim(ByteRange(4096, 8192))).confirm(.written(ByteRange(4096, 8192)))
        #expect(
            try gaps(of: ByteRange(0, 16384), in: job) == [
                ByteRange(0, 4096), ByteRange(8192, 16384),
            ])
    }

    /// Where fetched bytes land.
    private func gaps(of range: ByteRange, in job: HydrationJob) throws -> [ByteRange] {
        let gaps = Monitor([ByteRange]())
        let stored = try job.arrived(range) { gap in
            gaps.update { $0.append(gap) }
            return gap.count
        }
        #expect(stored == gaps.withLock { $0.reduce(0) { $0 + $1.count } })
        return gaps.withLock { $0 }
    }

    // MARK: Calls that fail

    /// Its range counted as here from before it began, so the bytes that it did not write were
    /// never fetched.
    @Test func aWriteThatFailsGivesItsRangeBack() throws {
        let job = try job()
        let claim = try #require(job.claim(ByteRange(4096, 8192)))
        #expect(!claim.isPartlyHere(ByteRange(4096, 8192)))
        claim.withdraw()
        #expect(try gaps(of: ByteRange(0, 16384), in: job) == [ByteRange(0, 16384)])
    }

    @Test func aShortWriteKeepsWhatItHasWritten() throws {
        let job = try job()
        try #require(job.claim(ByteRange(4096, 12288))).confirm(.written(ByteRange(4096, 8192)))
        #expect(
            try gaps(of: ByteRange(0, 16384), in: job) == [
                ByteRange(0, 4096), ByteRange(8192, 16384),
            ])
    }

    /// An edit from before is not given back with the new one that the index has refused.
    @Test func whatWasHereBeforeAWriteThatFailsIsHereAfterIt() throws {
        let job = try job()
        try #require(job.claim(ByteRange(0, 4096))).confirm(.written(ByteRange(0, 4096)))
        let claim = try #require(job.claim(ByteRange(0, 8192)))
        #expect(
            claim.ranges(after: .written(ByteRange(0, 8192)), of: Self.node) == ByteRangeSet([ByteRange(0, 8192)]))
        #expect(claim.isPartlyHere(ByteRange(0, 8192)))
        claim.withdraw()
        #expect(try gaps(of: ByteRange(0, 16384), in: job) == [ByteRange(4096, 16384)])
    }

    @Test func aWriteBeyondTheEndThatFailsLeavesTheSize() throws {
        let job = try job()
        let range = ByteRange(Self.size + 4096, Self.size + 8192)
        let refused = try #require(job.claim(range))
        #expect(
            refused.ranges(after: .written(range), of: Self.node)
                == ByteRangeSet([ByteRange(Self.size, range.upper)]))
        refused.withdraw()
        let claim = try #require(job.claim(range))
        #expect(claim.size == Self.size)
        claim.confirm(.written(range))
        #expect(try #require(job.claim(ByteRange(0, 1))).size == range.upper)
    }

    /// The tail was given up before the file was cut, and taken for zeros when the file was as long
    /// as before.
    @Test(arguments: [0, 1 << 20, size * 2]) func aTruncationThatFailsGivesTheSizeBack(size: UInt64)
        throws
    {
        let job = try job()
        try #require(job.claim(ByteRange(2 << 20, 3 << 20))).confirm(
            .written(ByteRange(2 << 20, 3 << 20)))
        let claim = try #require(job.claimSize(size))
        _ = claim.ranges(after: .resized(to: size), of: Self.node)
        claim.withdraw()
        let all = ByteRange(0, Self.size * 2)
        #expect(
            try gaps(of: all, in: job) == [ByteRange(0, 2 << 20), ByteRange(3 << 20, Self.size)])
    }

    @Test func nothingLandsWhereAProgramWrites() throws {
        let job = try job()
        let order = Monitor([String]())
        let claim = try #require(job.claim(ByteRange(4096, 8192)))
        let fetch = OwnedThread(name: "fetch") {
            order.update { $0.append("arrived") }
            _ = try? job.arrived(ByteRange(0, 16384)) { gap in
                order.update { $0.append("landed \(gap)") }
                return gap.count
            }
        }
        _ = order.wait { $0.isEmpty ? nil : true }
        usleep(50_000)
        order.update { $0.append("written") }
        claim.confirm(.written(ByteRange(4096, 8192)))
        fetch.join()
        #expect(
            order.withLock { $0 } == [
                "arrived", "written", "landed 0..<4096", "landed 8192..<16384",
            ])
    }

    /// Another job would not know of what is being written.
    @Test func aJobIsClosedAfterTheWritesThatHaveBegun() throws {
        let job = try job()
        let order = Monitor([String]())
        let claim = try #require(job.claim(ByteRange(4096, 8192)))
        let closing = OwnedThread(name: "closing") {
            order.update { $0.append("closing") }
            #expect(job.close())
            order.update { $0.append("closed") }
            job.end(.success(()))
        }
        _ = order.wait { $0.isEmpty ? nil : true }
        usleep(50_000)
        order.update { $0.append("written") }
        claim.confirm(.written(ByteRange(4096, 8192)))
        // Whoever comes while it ends asks again afterwards.
        #expect(job.claim(ByteRange(0, 1)) == nil)
        closing.join()
        #expect(order.withLock { $0 } == ["closing", "written", "closed"])
    }

    /// The second of two fetches that found the disk full gave back what the next job had fetched.
    @Test func aJobIsEndedByOneOnly() throws {
        let job = try job()
        #expect(job.close())
        #expect(!job.close())
    }

    // MARK: One job a node

    /// Who asked for what is there now waited with those whom its end failed.
    @Test func aJobForWhatWasThereBeforeIsNotTakenForOneOfWhatIsThereNow() throws {
        var jobs: [NodeID: HydrationJob] = [:]
        let first = try job()
        guard case .made(let made) = jobs.enter(first) else { throw Failure(.busy, "it is not alone") }
        #expect(made === first)
        guard case .found(let found) = jobs.enter(try job()) else { throw Failure(.busy, "there are two") }
        #expect(found === first)
        guard case .outdated(let outdated) = jobs.enter(try job(Generation(1))) else {
            throw Failure(.busy, "it was taken for one of the same content")
        }
        #expect(outdated === first)
        #expect(jobs.count == 1)
    }

    // MARK: The end

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
