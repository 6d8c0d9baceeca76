import PromiseCore
import PromiseSync
import Testing

@Suite struct LineSpeedTests {
    /// Fetches as many files of a size as may be under way, one in any case and no more than 16, over a line of so many bytes a
    /// second with a way there and back; and so on for a few rounds. Returns how many were under way in each.
    private func widths(size: UInt64, speed: Double, roundTrip: Double) -> [Int] {
        var line = LineSpeed()
        return (0..<6).map { _ in
            let count = min(max(1, line.byteCountAhead / size), 16)
            for _ in 0..<count { line.came(size * count, in: .seconds(roundTrip + Double(size * count) / speed)) }
            return Int(count)
        }
    }

    /// > Of all that is fetched ahead no more is under way than the line to the provider carries in a second:
    @Test func onASlowLineOneLargeFileIsFetchedAheadAtATime() {
        #expect(widths(size: 3 << 20, speed: 2.5e6, roundTrip: 0.05) == [1, 1, 1, 1, 1, 1])
        #expect(widths(size: 1 << 20, speed: 2.5e6, roundTrip: 0.05).dropFirst() == [2, 2, 2, 2, 2])
    }

    @Test func onAFastLineManyAre() {
        #expect(widths(size: 3 << 20, speed: 1e9, roundTrip: 0.02).dropFirst() == [16, 16, 16, 16, 16])
        #expect(widths(size: 8 << 20, speed: 1e9, roundTrip: 0).last == 16)
        // A long way there and back takes some more to be filled.
        #expect(widths(size: 3 << 19, speed: 1e9, roundTrip: 0.5).last == 16)
    }

    @Test func smallFilesAreHeldBackOnNoLine() {
        #expect(widths(size: 4 << 10, speed: 1e5, roundTrip: 0.3).allSatisfy { $0 == 16 })
        #expect(widths(size: 4 << 10, speed: 1e4, roundTrip: 3).allSatisfy { $0 == 16 })
    }

    @Test func aLineThatBecomesSlowIsNoticedWithinAFewFetches() {
        var line = LineSpeed()
        for _ in 0..<10 { line.came(1 << 20, in: .milliseconds(1)) }
        #expect(line.byteCountAhead > 1 << 29)
        for _ in 0..<20 { line.came(1 << 20, in: .seconds(1)) }
        #expect(line.byteCountAhead < 2 << 20)
    }

    /// Only the way there and back takes the time.
    @Test func aSmallFileTellsNothing() {
        var line = LineSpeed()
        line.came(1 << 20, in: .milliseconds(10))
        let before = line.byteCountAhead
        line.came(4096, in: .seconds(1))
        #expect(line.byteCountAhead == before)
    }
}
