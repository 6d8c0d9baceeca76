import PromiseMount
import Testing

/// When processors are kept awake for requests.
@Suite struct RequestBurstTests {
    private let hold = RequestBurst.hold

    @Test func aFirstBatchIsNoBurst() {
        var burst = RequestBurst()
        #expect(burst.batchCame(now: 5) == false)
        #expect(!burst.isHeld)
    }

    @Test func aSecondBatchSoonAfterwardsIsOne() {
        var burst = RequestBurst()
        _ = burst.batchCame(now: 5)
        #expect(burst.batchCame(now: 5 + hold) == true)
        #expect(burst.isHeld)
    }

    @Test func batchesFarApartAreNone() {
        var burst = RequestBurst()
        for step in UInt64(0)..<10 { #expect(burst.batchCame(now: step * (hold + 1)) == false) }
        #expect(!burst.isHeld)
    }

    @Test func theBeginningIsSaidOnce() {
        var burst = RequestBurst()
        _ = burst.batchCame(now: 0)
        #expect(burst.batchCame(now: 1) == true)
        #expect(burst.batchCame(now: 2) == false)
        #expect(burst.parked(now: 3) == false)
    }

    @Test func aParkedRequestIsEnough() {
        var burst = RequestBurst()
        #expect(burst.parked(now: 7) == true)
        #expect(burst.expired(now: 7 + hold) == .end)
        #expect(!burst.isHeld)
    }

    @Test func theEndComesAfterTheLastBatch() {
        var burst = RequestBurst()
        _ = burst.batchCame(now: 0)
        _ = burst.batchCame(now: 100)
        _ = burst.batchCame(now: 1_000)
        #expect(burst.expired(now: 100 + hold) == .later(900))
        #expect(burst.isHeld)
        #expect(burst.expired(now: 1_000 + hold) == .end)
    }

    @Test func afterItsEndTheNextBurstBeginsAnew() {
        var burst = RequestBurst()
        _ = burst.parked(now: 0)
        #expect(burst.expired(now: hold) == .end)
        #expect(burst.parked(now: hold + 1) == true)
    }
}
