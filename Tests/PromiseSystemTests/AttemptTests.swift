import PromiseSystem
import Synchronization
import Testing

/// Waiting for a call that may never return.
@Suite struct AttemptTests {
    private func elapsed(_ body: () async -> Void) async -> Duration {
        let clock = SystemClock()
        let start = clock.uptime()
        await body()
        return clock.uptime() - start
    }

    @Test(.timeLimit(.minutes(5))) func aCallThatHearsNothingIsLeftBehind() async {
        let pool = BlockingPool(name: "hanging", threads: 1)
        let gate = Monitor(false)
        let attempt = Attempt { await pool.run { gate.wait { $0 ? 7 : nil } ?? 0 } }
        let time = await elapsed { #expect(await attempt.outcome(within: .milliseconds(50)) == nil) }
        #expect(time >= .milliseconds(49) && time < .seconds(60))
        attempt.cancel()
        #expect(await attempt.outcome(within: .milliseconds(50)) == nil, "cancelling does not interrupt it")
        gate.update { $0 = true }
        #expect(await attempt.outcome() == 7, "and whoever waits again hears of it")
        #expect(await attempt.outcome(within: .zero) == 7)
        pool.stop()
    }

    @Test(.timeLimit(.minutes(5))) func aWaitOfNoTimeEnds() async {
        let attempt = Attempt { () async -> Int in
            try? await Task.sleep(for: .seconds(600))
            return 1
        }
        for _ in 0..<200 { #expect(await attempt.outcome(within: .zero) == nil) }
        attempt.cancel()
        #expect(await attempt.outcome() == 1, "a call that hears it ends")
    }

    @Test(.timeLimit(.minutes(5))) func whoeverWaitsCanBeCancelled() async {
        let gate = Monitor(false)
        let pool = BlockingPool(name: "hanging", threads: 1)
        let attempt = Attempt { await pool.run { gate.wait { $0 ? 7 : nil } ?? 0 } }
        let waiting = Task { await attempt.outcome() }
        let other = Task { await attempt.outcome() }
        waiting.cancel()
        #expect(await waiting.value == nil)
        gate.update { $0 = true }
        #expect(await other.value == 7, "others go on waiting")
        pool.stop()
    }
}
