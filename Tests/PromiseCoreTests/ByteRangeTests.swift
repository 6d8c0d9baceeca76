import PromiseCore
import PromiseTestSupport
import Testing

@Suite struct ByteRangeTests {
    @Test func boundsAreClampedAndAligned() {
        #expect(ByteRange(3, 9).clamped(to: 5) == ByteRange(3, 5))
        #expect(ByteRange(7, 9).clamped(to: 5) == ByteRange(5, 5))
        #expect(ByteRange(3, 9).aligned(to: 4) == ByteRange(0, 12))
        #expect(ByteRange(4, 8).aligned(to: 4) == ByteRange(4, 8))
        #expect(ByteRange(offset: .max - 1, count: 5).upper == .max)
        #expect(ByteRange(.max - 1, .max).aligned(to: 4).upper == .max)
    }

    @Test func neighboursDoNotOverlap() {
        #expect(!ByteRange(0, 4).overlaps(ByteRange(4, 8)) && ByteRange(0, 5).overlaps(ByteRange(4, 8)))
        #expect(ByteRange(0, 4).contains(ByteRange(4, 4)) && !ByteRange(0, 4).contains(ByteRange(3, 5)))
    }
}

/// The bytes as a set of numbers: slow and certain.
private struct NaiveSet {
    var bytes: Set<UInt64> = []

    mutating func insert(_ range: ByteRange) { bytes.formUnion(range.lower..<range.upper) }
    mutating func remove(_ range: ByteRange) { bytes.subtract(range.lower..<range.upper) }

    func contains(_ range: ByteRange) -> Bool { (range.lower..<range.upper).allSatisfy(bytes.contains) }

    /// Maximal runs of numbers within `range` that `isIncluded`.
    func runs(in range: ByteRange, where isIncluded: (UInt64) -> Bool) -> [ByteRange] {
        var result: [ByteRange] = []
        for byte in range.lower..<range.upper where isIncluded(byte) {
            if result.last?.upper == byte {
                result[result.count - 1].upper += 1
            } else {
                result.append(ByteRange(byte, byte + 1))
            }
        }
        return result
    }
}

@Suite struct ByteRangeSetTests {
    private func expectSame(_ set: ByteRangeSet, _ naive: NaiveSet, size: UInt64, _ what: @autoclosure () -> String) {
        let all = ByteRange(0, size)
        #expect(set.ranges == naive.runs(in: all, where: naive.bytes.contains), "\(what())")
        #expect(set.byteCount == UInt64(naive.bytes.count) && set.isEmpty == naive.bytes.isEmpty)
    }

    private static let small: [ByteRange] = (0...5 as ClosedRange<UInt64>).flatMap { lower in
        (lower...5).map { upper in ByteRange(lower, upper) }
    }

    @Test func everyPairOfSmallRangesBehavesAsSets() {
        for first in Self.small {
            for second in Self.small {
                var set = ByteRangeSet([first, second])
                var naive = NaiveSet()
                naive.insert(first)
                naive.insert(second)
                expectSame(set, naive, size: 5, "\(first) + \(second)")
                for third in Self.small {
                    #expect(set.contains(third) == naive.contains(third), "\(first) + \(second), \(third)")
                    let missing = naive.runs(in: third) { !naive.bytes.contains($0) }
                    #expect(set.missing(in: third) == missing, "\(first) + \(second), \(third)")
                }
                set = ByteRangeSet([ByteRange(0, 5)])
                naive = NaiveSet()
                naive.insert(ByteRange(0, 5))
                for range in [first, second] {
                    set.remove(range)
                    naive.remove(range)
                }
                expectSame(set, naive, size: 5, "0..<5 - \(first) - \(second)")
            }
        }
    }

    @Test func randomChangesBehaveAsSets() {
        var random = SeededGenerator(for: "ByteRangeSet")
        for _ in 0..<30 {
            let size = UInt64.random(in: 1...200, using: &random)
            var set = ByteRangeSet()
            var naive = NaiveSet()
            for _ in 0..<60 {
                let lower = UInt64.random(in: 0...size, using: &random)
                let range = ByteRange(lower, min(size, lower + UInt64.random(in: 0...20, using: &random)))
                if Int.random(in: 0..<3, using: &random) > 0 {
                    set.insert(range)
                    naive.insert(range)
                } else {
                    set.remove(range)
                    naive.remove(range)
                }
                let question = ByteRange(lower / 2, size)
                let missing = naive.runs(in: question) { !naive.bytes.contains($0) }
                #expect(set.missing(in: question) == missing, "seed \(random.seed)")
                #expect(set.contains(range) == naive.contains(range), "seed \(random.seed)")
            }
            expectSame(set, naive, size: size, "seed \(random.seed)")
        }
    }

    @Test func farEndOfALargeFileIsHeld() {
        var set = ByteRangeSet([ByteRange(.max - 5, .max)])
        set.insert(ByteRange(0, 1))
        #expect(set.missing(in: ByteRange(0, .max)) == [ByteRange(1, .max - 5)])
    }
}
