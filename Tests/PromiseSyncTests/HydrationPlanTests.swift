import PromiseCore
import PromiseSync
import PromiseTestSupport
import Testing

private let mebibyte: UInt64 = 1 << 20

@Suite struct HydrationPlanTests {
    /// Starts what is planned and lets it arrive until nothing is planned any more; returns all fetches in order.
    private func run(_ plan: inout HydrationPlan, waiting: [ByteRange]) -> [ByteRange] {
        var all: [ByteRange] = []
        while true {
            let fetches = plan.next(waiting: waiting)
            if fetches.isEmpty { return all }
            all += fetches
            for fetch in fetches {
                plan.arrived(fetch)
                plan.ended(fetch)
            }
        }
    }

    @Test func smallFileIsFetchedWhole() {
        var plan = HydrationPlan(size: mebibyte, present: ByteRangeSet())
        plan.read(ByteRange(70_000, 70_010))
        #expect(plan.next(waiting: [ByteRange(70_000, 70_010)]) == [ByteRange(0, mebibyte)])
        #expect(plan.next(waiting: [ByteRange(0, 10)]).isEmpty)
        plan.arrived(ByteRange(0, mebibyte))
        plan.ended(ByteRange(0, mebibyte))
        #expect(plan.isComplete && plan.next(waiting: [ByteRange(0, 10)]).isEmpty)
    }

    /// 151 requests for 256 MiB, each of which a store may take 180 ms to begin; then 80 of them.
    @Test(arguments: [false, true]) func aLargeFileThatIsReadInOrderIsFetchedInGrowingPieces(isSlow: Bool) {
        for wantsWhole in [false, true] {
            let size = 256 * mebibyte
            var plan = HydrationPlan(size: size, present: ByteRangeSet())
            plan.wantsWhole = wantsWhole
            plan.isSlow = isSlow
            var under: [ByteRange] = []
            var all: [ByteRange] = []
            for offset in stride(from: 0, to: size, by: 128 << 10) {
                let read = ByteRange(offset: offset, count: 128 << 10)
                plan.read(read)
                while true {
                    let fetches = plan.next(waiting: plan.isPresent(read) ? [] : [read])
                    under += fetches
                    all += fetches
                    if plan.isPresent(read) { break }
                    let first = under.removeFirst()
                    plan.arrived(first)
                    plan.ended(first)
                }
            }
            // What nobody waits for comes in small pieces still: a kill costs what is on its way.
            let isLarge = isSlow && !wantsWhole
            #expect(all.count < (isLarge ? 16 : 90), "\(all.count) requests")
            let most: UInt64 = isLarge ? 32 : 8
            #expect(all.allSatisfy { $0.count <= most * mebibyte } && all[0].count <= 4 * mebibyte)
        }
    }

    /// What goes first is what has been read; what somebody is being given, waits for or has on its way stays.
    @Test func whatLiesBehindAReaderGoesBeforeWhatIsAhead() {
        var plan = HydrationPlan(size: 64 * mebibyte, present: ByteRangeSet([ByteRange(0, 32 * mebibyte)]))
        plan.read(ByteRange(8 * mebibyte, 9 * mebibyte))
        #expect(plan.expendable(4 * mebibyte, besides: []) == [ByteRange(0, 4 * mebibyte)])
        #expect(plan.expendable(1, besides: []).map(\.count) == [128 << 10])
        let given = ByteRange(mebibyte + 5, mebibyte + 6)
        #expect(
            plan.expendable(2 * mebibyte, besides: [given])
                == [ByteRange(0, mebibyte), ByteRange(mebibyte + (128 << 10), 2 * mebibyte + (128 << 10))])
        let all = plan.expendable(.max >> 1, besides: [ByteRange(9 * mebibyte, 10 * mebibyte)])
        #expect(all.reduce(0) { $0 + $1.count } == 31 * mebibyte && all.last?.upper == 9 * mebibyte)
        for range in all { plan.dropped(range) }
        #expect(plan.presentByteCount == mebibyte && !plan.isComplete)
        plan.stayed(all[0])
        #expect(plan.presentByteCount == mebibyte + all[0].count)
    }

    @Test func whereThereIsRoomForAPartNoMoreIsFetchedAheadThanThat() {
        var plan = HydrationPlan(size: 256 * mebibyte, present: ByteRangeSet())
        plan.stream(within: 16 * mebibyte)
        var furthest: UInt64 = 0
        for offset in stride(from: 0, to: 64 * mebibyte, by: 128 << 10) {
            let read = ByteRange(offset: offset, count: 128 << 10)
            plan.read(read)
            for fetch in plan.next(waiting: plan.isPresent(read) ? [] : [read]) {
                furthest = max(furthest, fetch.upper - min(fetch.upper, offset))
                plan.arrived(fetch)
                plan.ended(fetch)
            }
            #expect(plan.isPresent(read))
        }
        #expect(furthest <= 8 * mebibyte)
    }

    @Test func nothingIsFetchedForNobody() {
        for size in [0, 1, mebibyte, 8 * mebibyte] {
            var plan = HydrationPlan(size: size, present: ByteRangeSet())
            #expect(plan.next(waiting: []).isEmpty)
        }
        #expect(HydrationPlan(size: 0, present: ByteRangeSet()).isComplete)
    }

    @Test func firstReadOfALargeFileFetchesLittle() {
        var plan = HydrationPlan(size: 2 << 30, present: ByteRangeSet())
        let read = ByteRange(0, 128 << 10)
        plan.read(read)
        let fetches = run(&plan, waiting: [read])
        #expect(fetches.first?.contains(read) == true)
        #expect(fetches.reduce(0) { $0 + $1.count } <= 2 * mebibyte)
    }

    @Test func readFarIntoALargeFileFetchesWhatIsNearOnly() {
        var plan = HydrationPlan(size: 2 << 30, present: ByteRangeSet())
        let read = ByteRange(offset: 3 << 29, count: mebibyte)
        plan.read(read)
        let fetches = run(&plan, waiting: [read])
        #expect(plan.isPresent(read))
        #expect(fetches.reduce(0) { $0 + $1.count } < 16 * mebibyte)
        #expect(fetches.allSatisfy { $0.lower >= (3 << 29) - mebibyte })
    }

    @Test func readingInOrderWidensWhatIsFetchedAhead() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        var ahead: [UInt64] = []
        for step in 0..<256 as Range<UInt64> {
            let read = ByteRange(offset: step * (128 << 10), count: 128 << 10)
            plan.read(read)
            _ = run(&plan, waiting: [read])
            ahead.append(plan.presentByteCount - read.upper)
        }
        #expect(ahead.first! <= 2 * mebibyte)
        #expect(ahead[32] > ahead[0] && ahead[64] > ahead[32])
        #expect(ahead.max()! >= 60 * mebibyte && ahead.max()! <= 69 * mebibyte)
    }

    @Test func readingHereAndThereDoesNotWiden() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        var random = SeededGenerator(for: "random reads")
        for number in 1...50 as ClosedRange<UInt64> {
            let read = ByteRange(offset: UInt64.random(in: 0..<8000, using: &random) * (128 << 10), count: 4096)
            plan.read(read)
            _ = run(&plan, waiting: [read])
            #expect(plan.presentByteCount <= number * 2 * mebibyte, "seed \(random.seed)")
        }
    }

    @Test func noByteIsFetchedTwice() {
        var random = SeededGenerator(for: "HydrationPlan")
        for _ in 0..<40 {
            let size = UInt64.random(in: mebibyte + 1...64 * mebibyte, using: &random)
            var present = ByteRangeSet()
            for _ in 0..<4 {
                let lower = UInt64.random(in: 0..<size, using: &random)
                present.insert(ByteRange(offset: lower, count: 300_000).clamped(to: size))
            }
            var plan = HydrationPlan(size: size, present: present)
            var flying: [ByteRange] = []
            for step in 0..<60 {
                let read = ByteRange(offset: UInt64.random(in: 0..<size, using: &random), count: 200_000).clamped(to: size)
                if step % 3 != 0 { plan.read(read) }
                if step == 30 { plan.wantsWhole = true }
                for fetch in plan.next(waiting: step % 3 == 0 ? [read] : []) {
                    #expect(present.missing(in: fetch) == [fetch], "seed \(random.seed): \(fetch) is here")
                    #expect(!flying.contains { $0.overlaps(fetch) }, "seed \(random.seed): \(fetch) is on its way")
                    #expect(fetch.upper <= size && fetch.count <= 8 * mebibyte && !fetch.isEmpty)
                    flying.append(fetch)
                }
                #expect(flying.count <= 16 && plan.inFlight.count == flying.count)
                if let landed = flying.randomElement(using: &random) {
                    // Some fetches fail half-way.
                    let part = Bool.random(using: &random) ? landed : ByteRange(landed.lower, landed.lower + landed.count / 2)
                    plan.arrived(part)
                    present.insert(part)
                    plan.ended(landed)
                    flying.removeAll { $0 == landed }
                }
            }
            for fetch in flying { plan.ended(fetch) }
            _ = run(&plan, waiting: [])
            #expect(plan.isComplete, "seed \(random.seed)")
        }
    }

    /// Its first bytes come first, and one request costs less than two.
    @Test func whatIsReadAheadComesWithWhatIsRead() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        let read = ByteRange(offset: 200 * mebibyte, count: 16 << 10)
        plan.read(read)
        #expect(plan.next(waiting: [read]) == [ByteRange(offset: 200 * mebibyte, count: mebibyte)])
        #expect(plan.next(waiting: [read]).isEmpty)
    }

    @Test func whoHasJustBegunToReadIsServedBeforeWhatFollows() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        let near = HydrationPlan.nearFetchesMax
        let reads = (0..<4 as Range<UInt64>).map { ByteRange(offset: $0 * mebibyte / 4, count: mebibyte / 4) }
        for (number, read) in reads.enumerated() {
            plan.read(read)
            #expect(plan.next(waiting: Array(reads[...number]), atOnce: near).count == (number == 0 ? 1 : 0))
        }
        plan.arrived(ByteRange(0, mebibyte))
        plan.ended(ByteRange(0, mebibyte))
        #expect(plan.next(waiting: [], atOnce: near).first?.lower == mebibyte)
    }

    /// File managers and `file` look at the beginning of each file.
    @Test func aGlanceAtALargeFileNearByFetchesLittleOfIt() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        let near = HydrationPlan.nearFetchesMax
        let glance = ByteRange(0, 16 << 10)
        plan.read(glance)
        #expect(plan.next(waiting: [glance], atOnce: near) == [ByteRange(0, 128 << 10)])
        plan.arrived(ByteRange(0, 128 << 10))
        plan.ended(ByteRange(0, 128 << 10))
        // The kernel reads ahead when it is read on, and then so does the plan, before anybody waits.
        plan.read(ByteRange(16 << 10, 48 << 10))
        #expect(plan.next(waiting: [], atOnce: near) == [ByteRange(128 << 10, 2 * mebibyte)])
    }

    /// What is on its way is what a killed daemon fetches again.
    @Test(arguments: [HydrationPlan.nearFetchesMax, HydrationPlan.fetchesMax]) func littleIsOnItsWay(countMax: Int) {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        plan.wantsWhole = true
        let fetches = plan.next(waiting: [ByteRange(0, 4096)], atOnce: countMax)
        #expect(fetches.count == countMax && fetches.first?.lower == 0)
        #expect(fetches.reduce(0) { $0 + $1.count } <= 24 * mebibyte)
    }

    @Test func aReaderWhoIsAheadOfWhatIsFetchedWidensItFaster() {
        func ahead(isLate: Bool) -> UInt64 {
            var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
            if !isLate { plan.arrived(ByteRange(0, 4 * mebibyte)) }
            for step in 0..<4 as Range<UInt64> { plan.read(ByteRange(offset: step * mebibyte, count: mebibyte)) }
            return plan.next(waiting: []).map(\.upper).max()!
        }
        #expect(ahead(isLate: true) > ahead(isLate: false))
    }

    @Test func waitersComeBeforeReadAhead() {
        var plan = HydrationPlan(size: 1 << 30, present: ByteRangeSet())
        plan.read(ByteRange(0, 4096))
        let waiter = ByteRange(offset: 500 * mebibyte, count: 4096)
        #expect(plan.next(waiting: [waiter]).first?.contains(waiter) == true)
    }

    @Test func cutFileFetchesNothingBehindItsEnd() {
        var plan = HydrationPlan(size: 8 * mebibyte, present: ByteRangeSet([ByteRange(0, 8 * mebibyte)]))
        plan.resize(to: 3 * mebibyte)
        #expect(plan.isComplete && plan.presentByteCount == 3 * mebibyte)
        var partial = HydrationPlan(size: 8 * mebibyte, present: ByteRangeSet([ByteRange(0, mebibyte)]))
        partial.wantsWhole = true
        partial.resize(to: 3 * mebibyte)
        #expect(run(&partial, waiting: []).allSatisfy { $0.upper <= 3 * mebibyte })
        #expect(partial.isComplete)
    }

    @Test func grownFileFetchesNothingOfWhatItGrewBy() {
        var plan = HydrationPlan(size: 2 * mebibyte, present: ByteRangeSet())
        plan.resize(to: 10 * mebibyte)
        plan.wantsWhole = true
        #expect(plan.isPresent(ByteRange(2 * mebibyte, 10 * mebibyte)))
        #expect(run(&plan, waiting: []).allSatisfy { $0.upper <= 2 * mebibyte })
        #expect(plan.isComplete)
    }

    @Test func cutAndGrownAgainReadsZeroWhereItWasCut() {
        var plan = HydrationPlan(size: 4 * mebibyte, present: ByteRangeSet())
        plan.resize(to: mebibyte + 1)
        plan.resize(to: 4 * mebibyte)
        #expect(plan.isPresent(ByteRange(mebibyte + 1, 4 * mebibyte)) && !plan.isPresent(ByteRange(0, mebibyte + 1)))
    }

    /// Who reads elsewhere waited for everything that was fetched ahead of where it had been.
    @Test func onASlowLineLittleIsUnderWayThatNobodyWaitsFor() {
        var plan = HydrationPlan(size: 256 << 20, present: ByteRangeSet())
        for offset in 0..<64 { plan.read(ByteRange(offset: UInt64(offset) << 17, count: 1 << 17)) }
        let first = plan.next(waiting: [ByteRange(offset: 63 << 17, count: 1 << 17)], aheadMax: 2 << 20)
        #expect(first.count == 2)
        let elsewhere = ByteRange(offset: 200 << 20, count: 4096)
        plan.read(elsewhere)
        let next = plan.next(waiting: [elsewhere], aheadMax: 2 << 20)
        #expect(next.map(\.lower) == [elsewhere.lower])
    }

    @Test func bytesThatArriveLateAreClampedToTheFile() {
        var plan = HydrationPlan(size: 8 * mebibyte, present: ByteRangeSet())
        plan.resize(to: 2 * mebibyte)
        plan.arrived(ByteRange(mebibyte, 8 * mebibyte))
        #expect(plan.presentByteCount == mebibyte)
    }

    /// A provider whose file was overwritten says so at the end of a fetch: the next waiter took what had
    /// come for the whole file.
    @Test func whatCameOfAnotherVersionIsNotHere() {
        let (whole, edit) = (ByteRange(0, 40_000), ByteRange(10, 20))
        var plan = HydrationPlan(size: 40_000, present: ByteRangeSet())
        plan.wantsWhole = true
        #expect(plan.next(waiting: []) == [whole])
        plan.arrived(whole)
        plan.apply(.written(edit))
        #expect(!plan.isComplete)
        plan.refuteUnproven()
        plan.ended(whole)
        #expect(plan.present.ranges == [edit])
        #expect(plan.next(waiting: []) == [whole])
        plan.arrived(whole)
        plan.ended(whole)
        #expect(plan.isComplete)
    }

    /// What a fetch that nobody wanted any more had brought counted as of the version that was asked for.
    @Test func whatAGivenUpFetchBroughtIsProvenByTheNextOneThatEndsWell() {
        var plan = HydrationPlan(size: 8 * mebibyte, present: ByteRangeSet())
        plan.wantsWhole = true
        let first = plan.next(waiting: [], atOnce: 1)
        let half = ByteRange(0, first[0].upper / 2)
        plan.arrived(half)
        plan.brokeOff(first[0])
        #expect(plan.isPresent(half) && plan.proven.ranges.isEmpty)
        let next = plan.next(waiting: [], atOnce: 1)
        #expect(next[0].lower == half.upper)
        plan.arrived(next[0])
        plan.ended(next[0])
        #expect(plan.proven.ranges == [ByteRange(0, next[0].upper)])
    }

    /// A fetch that had begun before another one was given up says nothing of what that one had brought.
    @Test func whatIsInDoubtIsAskedForAgainWhenNothingElseIsMissing() {
        var plan = HydrationPlan(size: 8 * mebibyte, present: ByteRangeSet())
        plan.wantsWhole = true
        let fetches = plan.next(waiting: [])
        for fetch in fetches { plan.arrived(fetch) }
        plan.brokeOff(fetches[0])
        for fetch in fetches.dropFirst() { plan.ended(fetch) }
        #expect(plan.isPresent(ByteRange(0, 8 * mebibyte)) && !plan.isComplete)
        let again = plan.next(waiting: [])
        #expect(again == [fetches[0]])
        plan.arrived(again[0])
        plan.ended(again[0])
        #expect(plan.isComplete)
    }

    /// For each piece all of it came, and was thrown away but for the piece.
    @Test func ofAProviderWithoutRangesAFileComesInOneFetch() {
        let size = 100 * mebibyte
        var plan = HydrationPlan(size: size, present: ByteRangeSet())
        plan.fetchesWhole = true
        plan.read(ByteRange(0, 4096))
        let whole = ByteRange(0, size)
        #expect(plan.next(waiting: [ByteRange(0, 4096)]) == [whole])
        plan.wantsWhole = true
        plan.arrived(whole)
        #expect(plan.next(waiting: []).isEmpty)
        plan.ended(whole)
        #expect(plan.isComplete && plan.next(waiting: []).isEmpty)
    }

    /// What a fetch had brought that was given up counted as proven as soon as its job had ended: written to after that, the
    /// file was kept, and sent, with what may have been others'.
    @Test func whatIsLeftFromBeforeIsNotProvenUntilAFetchEndsWell() {
        let (left, edit) = (ByteRange(0, mebibyte), ByteRange(0, 4096))
        var plan = HydrationPlan(
            size: 8 * mebibyte, present: ByteRangeSet([left]), unproven: ByteRangeSet([left]))
        plan.apply(.written(edit))
        #expect(plan.isPresent(left) && plan.proven.ranges == [edit])
        plan.wantsWhole = true
        let next = plan.next(waiting: [], atOnce: 1)
        plan.arrived(next[0])
        plan.ended(next[0])
        #expect(plan.proven.ranges == [ByteRange(0, next[0].upper)])
    }
}
