import PromiseSystem
import Synchronization
import Testing

/// Looks that say themselves when the next one is.
@Suite struct LookoutTests {
    private final class Count: Sendable {
        let value = Monitor(0)
        func add() { value.update { $0 += 1 } }
        func reaches(_ count: Int) -> Bool {
            value.wait(timeout: .seconds(60)) { $0 >= count ? true : nil } ?? false
        }
    }

    @Test func itLooksAgainWhenItSaysSo() {
        let clock = SystemClock()
        let lookout = Lookout(name: "test", clock: clock)
        let count = Count()
        lookout.begin {
            count.add()
            return clock.uptime() + .milliseconds(5)
        }
        lookout.wake(at: clock.uptime() + .milliseconds(5))
        #expect(count.reaches(3))
        lookout.end()
        let atEnd = count.value.withLock { $0 }
        lookout.wake(at: clock.uptime())
        #expect(lookout.due == nil && count.value.withLock { $0 } == atEnd)
    }

    @Test func whoWakesItForEarlierIsHeard() {
        let clock = SystemClock()
        let lookout = Lookout(name: "test", clock: clock)
        defer { lookout.end() }
        let count = Count()
        lookout.begin {
            count.add()
            return nil
        }
        lookout.wake(at: clock.uptime() + .seconds(600))
        lookout.wake(at: clock.uptime() + .milliseconds(5))
        #expect(count.reaches(1))
        // The later time has gone with the look, which would have asked for it again.
        #expect(lookout.due == nil)
    }

    @Test func withoutAThreadItLooksWhenItIsTold() {
        let clock = SystemClock()
        let lookout = Lookout(manual: "test", clock: clock)
        let looks = Atomic(0)
        lookout.begin {
            looks.add(1, ordering: .relaxed)
            return nil
        }
        lookout.wake(at: .zero)
        #expect(lookout.due == .zero && looks.load(ordering: .relaxed) == 0)
        lookout.lookNow()
        #expect(lookout.due == nil && looks.load(ordering: .relaxed) == 1)
    }
}
