import PromiseCore
import PromiseSync
import PromiseSystem
import Synchronization
import Testing

/// Whether a provider is far away, by how long it takes to its first bytes.
@Suite struct ProviderDelayTests {
    private final class Clock: TimeSource {
        let time = Mutex(Duration.zero)
        func now() -> Timestamp { .zero }
        func uptime() -> Duration { time.withLock { $0 } }
        func advance(_ time: Duration) { self.time.withLock { $0 += time } }
    }

    private let clock = Clock()
    private let delay = ProviderDelay()

    private func call(_ duration: Duration) {
        let call = ProviderDelay.Call(delay, clock)
        clock.advance(duration)
        call.bytesCame()
    }

    @Test func aProviderThatIsFarIsAskedForMuchAtOnce() {
        #expect(delay.fetchesAtOnce == HydrationPlan.nearFetchesMax)
        call(.milliseconds(20))
        #expect(delay.fetchesAtOnce == HydrationPlan.fetchesMax)
        call(.milliseconds(20))
        #expect(delay.fetchesAtOnce == HydrationPlan.fetchesMax)
    }

    /// A few large ones take the place of many.
    @Test func aRequestThatIsSlowToBeginIsOneOfFew() {
        call(.milliseconds(5))
        #expect(!delay.isSlow)
        call(.milliseconds(20))
        #expect(delay.isSlow)
        call(.microseconds(500))
        #expect(!delay.isSlow)
    }

    @Test func oneSlowCallDoesNotMakeItFarForLong() {
        call(.microseconds(500))
        call(.milliseconds(30))
        call(.microseconds(500))
        #expect(delay.fetchesAtOnce == HydrationPlan.nearFetchesMax)
    }

    /// They wait for each other.
    @Test func callsAmongOthersDoNotMakeItFar() {
        let first = ProviderDelay.Call(delay, clock)
        clock.advance(.microseconds(500))
        first.bytesCame()
        for _ in 0..<8 { call(.milliseconds(20)) }
        #expect(delay.fetchesAtOnce == HydrationPlan.nearFetchesMax)
        withExtendedLifetime(first) {}
    }
}
