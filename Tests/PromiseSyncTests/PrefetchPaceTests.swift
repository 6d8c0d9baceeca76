import PromiseCore
import PromiseSync
import Testing

@Suite struct PrefetchPaceTests {
    /// Fetches as many files of a size as may be under way, from a line of so many bytes a second, with a way there and back;
    /// and so on for a few rounds. Returns how many were under way in each.
    private func widths(size: UInt64, speed: Double, roundTrip: Double, rounds: Int = 6) -> [Int] {
        var pace = PrefetchPace()
        var (now, fetched): (Duration, UInt64) = (.zero, 0)
        return (0..<rounds).map { _ in
            var fetches: [PrefetchPace.Fetch] = []
            while fetches.count < 16, pace.mayBegin(size: size) {
                fetches.append(pace.begin(size: size, at: now, fetched: fetched))
            }
            let byteCount = size * UInt64(fetches.count)
            now = now + .seconds(roundTrip + Double(byteCount) / speed)
            fetched += byteCount
            for fetch in fetches { pace.end(fetch, at: now, fetched: fetched) }
            return fetches.count
        }
    }

    @Test func onASlowLineOneLargeFileIsFetchedAheadAtATime() {
        #expect(widths(size: 3 << 20, speed: 2.5e6, roundTrip: 0.05) == [1, 1, 1, 1, 1, 1])
        #expect(widths(size: 1 << 20, speed: 2.5e6, roundTrip: 0.05).dropFirst() == [2, 2, 2, 2, 2])
    }

    @Test func onAFastLineManyAre() {
        #expect(widths(size: 3 << 20, speed: 1e9, roundTrip: 0.02).dropFirst() == [16, 16, 16, 16, 16])
        #expect(widths(size: 8 << 20, speed: 1e9, roundTrip: 0).last == 16)
    }

    @Test func smallFilesAreHeldBackOnNoLine() {
        #expect(widths(size: 4 << 10, speed: 1e5, roundTrip: 0.3).allSatisfy { $0 == 16 })
        #expect(widths(size: 4 << 10, speed: 1e4, roundTrip: 3).allSatisfy { $0 == 16 })
    }

    /// A line that becomes slow is noticed within a few files.
    @Test func aLineThatBecomesSlowIsNoticed() {
        var pace = PrefetchPace()
        var (now, fetched): (Duration, UInt64) = (.zero, 0)
        for step in 0..<30 {
            let fetch = pace.begin(size: 1 << 20, at: now, fetched: fetched)
            now = now + .seconds(step < 10 ? 0.001 : 1)
            fetched += 1 << 20
            pace.end(fetch, at: now, fetched: fetched)
        }
        let fetch = pace.begin(size: 1 << 20, at: now, fetched: fetched)
        #expect(!pace.mayBegin(size: 1 << 20))
        pace.end(fetch, at: now, fetched: fetched)
        #expect(pace.mayBegin(size: 1 << 30))
    }
}
