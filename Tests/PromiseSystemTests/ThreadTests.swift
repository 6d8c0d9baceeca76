import Glibc
import PromiseCore
import PromiseSystem
import Synchronization
import Testing

@Suite struct MonitorTests {
    private func elapsed(_ body: () -> Void) -> Duration {
        let clock = SystemClock()
        let start = clock.uptime()
        body()
        return clock.uptime() - start
    }

    @Test func waitReturnsAtOnceWhenThereIsAValue() {
        let monitor = Monitor(5)
        #expect(monitor.wait(timeout: .seconds(60)) { $0 } == 5)
    }

    @Test func waitEndsAtItsTimeout() {
        let monitor = Monitor(0)
        let time = elapsed { _ = monitor.wait(timeout: .milliseconds(60)) { _ in nil as Int? } }
        #expect(time >= .milliseconds(59) && time < .seconds(60))
        for timeout in [Duration.zero, .seconds(-5), .nanoseconds(999_999_999) - .seconds(1)] {
            #expect(elapsed { _ = monitor.wait(timeout: timeout) { _ in nil as Int? } } < .seconds(60))
        }
    }

    @Test func updateWakesEveryWaiter() {
        let monitor = Monitor((isOpen: false, passed: 0))
        let threads = (0..<8).map { number in
            OwnedThread(name: "waiter-\(number)") {
                let passed: Bool? = monitor.wait(timeout: .seconds(60)) { $0.isOpen ? true : nil }
                if passed == true { monitor.update { $0.passed += 1 } }
            }
        }
        monitor.update { $0.isOpen = true }
        threads.forEach { $0.join() }
        #expect(monitor.withLock { $0.passed } == 8)
    }

    @Test func veryLongTimeoutsDoNotOverflow() {
        let monitor = Monitor(false)
        let thread = OwnedThread(name: "a name of more than fifteen bytes") { monitor.update { $0 = true } }
        #expect(monitor.wait(timeout: .seconds(Int64.max / 2)) { $0 ? 1 : nil } == 1)
        thread.join()
    }

    @Test func lockExcludes() {
        let monitor = Monitor(0)
        let threads = (0..<4).map { number in
            OwnedThread(name: "counter-\(number)") { for _ in 0..<5_000 { monitor.withLock { $0 += 1 } } }
        }
        threads.forEach { $0.join() }
        #expect(monitor.withLock { $0 } == 20_000)
    }
}

@Suite struct BlockingPoolTests {
    @Test func resultsAndErrorsComeBack() async throws {
        let pool = BlockingPool(name: "test", threads: 2)
        defer { pool.stop() }
        let results = await withTaskGroup(of: Int.self) { group in
            for number in 0..<50 { group.addTask { await pool.run { number * 2 } } }
            return await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(results == Set((0..<50).map { $0 * 2 }))
        let failure = await #expect(throws: Failure.self) {
            try await pool.run { () throws(Failure) -> Int in throw Failure(.busy, "not now") }
        }
        #expect(failure?.code == .busy)
    }

    @Test func jobsOfOneThreadRunInOrder() async {
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.stop() }
        let order = Monitor([Int]())
        for number in 0..<100 { pool.submit { order.update { $0.append(number) } } }
        await pool.run {}
        #expect(order.withLock { $0 } == Array(0..<100))
    }

    @Test func stoppingFinishesTheQueueAndEndsTheThreads() {
        final class Token: Sendable {}
        weak var token: Token?
        let done = Monitor(0)
        do {
            let kept = Token()
            token = kept
            let pool = BlockingPool(name: "test", threads: 3)
            for _ in 0..<30 {
                pool.submit {
                    withExtendedLifetime(kept) {}
                    done.update { $0 += 1 }
                }
            }
            pool.stop()
        }
        #expect(done.wait(timeout: .seconds(60)) { $0 == 30 ? true : nil } == true)
        // The jobs are gone with what they held, soon after the last one ran.
        let deadline = SystemClock().uptime() + .seconds(60)
        while token != nil && SystemClock().uptime() < deadline { _ = done.wait(timeout: .milliseconds(1)) { _ in nil as Bool? } }
        #expect(token == nil)
    }

    /// On a pool of one thread nothing else could.
    @Test func whatATaskOfThePoolRunsIsRunWhereItIs() async {
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.stop() }
        let threads = await Task(executorPreference: pool) {
            let here = UInt(pthread_self())
            return (here, await pool.run { UInt(pthread_self()) }, await pool.run { UInt(pthread_self()) })
        }.value
        #expect(threads.0 == threads.1 && threads.0 == threads.2)
    }

    @Test func aJobThatComesAfterTheEndIsRunAllTheSame() async {
        let pool = BlockingPool(name: "test", threads: 1)
        await pool.run {}
        pool.stop()
        let result = await pool.run { 7 }
        #expect(result == 7)
    }

    @Test func pastTheCooperativePoolManyJobsBlockAtOnce() async {
        let pool = BlockingPool(name: "test", threads: 6)
        defer { pool.stop() }
        let meeting = Monitor(0)
        let met = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    await pool.run {
                        meeting.update { $0 += 1 }
                        return meeting.wait(timeout: .seconds(60)) { $0 == 6 ? true : nil } == true
                    }
                }
            }
            return await group.allSatisfy { $0 }
        }
        #expect(met)
    }
}

@Suite struct ClockTests {
    @Test func uptimeNeverJumpsBack() {
        let clock = SystemClock()
        var last = clock.uptime()
        for _ in 0..<1_000 {
            let now = clock.uptime()
            #expect(now >= last)
            last = now
        }
        #expect(clock.now() > Timestamp(seconds: 1_600_000_000, nanoseconds: 0))
    }
}

#if DEBUG
    @Suite struct LockRankTests {
        @Test func locksAreTakenInTheirOrderOnly() async {
            let (first, second) = (Monitor(0, rank: .coordinator), Monitor(0, rank: .hydrator))
            first.withLock { _ in second.withLock { _ in } }
            second.withLock { _ in }
            await #expect(processExitsWith: .failure) {
                let (first, second) = (Monitor(0, rank: .coordinator), Monitor(0, rank: .hydrator))
                second.withLock { _ in first.withLock { _ in } }
            }
            await #expect(processExitsWith: .failure) {
                let (one, other) = (Monitor(0, rank: .leaf), Monitor(0, rank: .leaf))
                one.withLock { _ in other.withLock { _ in } }
            }
        }
    }
#endif
