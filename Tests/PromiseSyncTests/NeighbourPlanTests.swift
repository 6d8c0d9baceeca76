import PromiseCore
import PromiseSync
import PromiseTestSupport
import Testing

/// A folder of small files, and what the plan fetches ahead while a program opens them.
private struct Reader {
    let names: [FileName]
    var plan = NeighbourPlan()
    var fetched: [Int] = []
    let size: UInt64

    init(count: Int, size: UInt64 = 4096) {
        names = (0..<count).map { FileName("file \(10_000 + $0)")! }
        self.size = size
    }

    /// Opens file `number`; returns what is fetched now.
    mutating func open(_ number: Int) -> [Int] {
        let folder = NodeID(7)
        if let after = plan.opened(names[number], in: folder) {
            let start = names.firstIndex(of: after)! + 1
            let end = min(start + NeighbourPlan.loadCount, names.count)
            let neighbours = (start..<end).map {
                NeighbourPlan.Neighbour(node: NodeID(UInt64(100 + $0)), name: names[$0], size: size, isWanted: $0 % 10 != 9)
            }
            plan.loaded(neighbours, in: folder)
        }
        let next = plan.next(in: folder).map { Int($0.rawValue) - 100 }
        fetched += next
        return next
    }
}

@Suite struct NeighbourPlanTests {
    @Test func aReaderInOrderFindsTheNextFilesHere() {
        var reader = Reader(count: 1000)
        var misses = 0
        for number in 0..<1000 {
            if !reader.fetched.contains(number), number % 10 != 9 { misses += 1 }
            _ = reader.open(number)
        }
        #expect(misses <= 3)
        #expect(Set(reader.fetched).count == reader.fetched.count, "nothing is given twice")
        #expect(reader.fetched.allSatisfy { $0 % 10 != 9 }, "only what is wanted is given")
    }

    @Test func aSingleOpenFetchesNothingElse() {
        for opens in [[0], [0, 1], [5, 500, 7], [10, 9, 8, 7, 6, 5]] {
            var reader = Reader(count: 1000)
            for number in opens { #expect(reader.open(number).isEmpty) }
        }
    }

    @Test func whoOpensHereAndThereGetsNothing() {
        var random = SeededGenerator(for: "neighbours")
        var reader = Reader(count: 5000)
        for _ in 0..<300 { _ = reader.open(Int.random(in: 0..<5000, using: &random)) }
        #expect(reader.fetched.isEmpty, "seed \(random.seed)")
    }

    @Test func theWindowGrowsAndHasALimit() {
        var reader = Reader(count: 1000)
        var furthest: [Int] = []
        for number in 0..<200 {
            _ = reader.open(number)
            furthest.append((reader.fetched.max() ?? number) - number)
        }
        #expect(furthest[2] <= 8 && furthest[4] > furthest[2])
        #expect(furthest.max()! > 40 && furthest.max()! <= 64)
    }

    @Test func largerFilesAreFetchedFewerAtATime() {
        var reader = Reader(count: 200, size: 1 << 20)
        for number in 0..<100 {
            _ = reader.open(number)
            #expect(reader.fetched.filter { $0 > number }.count <= 16)
        }
        #expect(reader.fetched.count > 50)
    }

    @Test func skippedFilesAndSeveralReadersKeepTheOrder() {
        var reader = Reader(count: 1000)
        for number in stride(from: 0, to: 600, by: 6) {
            for step in [2, 0, 3, 1] { _ = reader.open(number + step) }
        }
        #expect(reader.fetched.count > 300)
    }

    @Test func theEndOfAFolderIsAnEnd() {
        var reader = Reader(count: 12)
        for number in 0..<12 { _ = reader.open(number) }
        #expect(reader.open(11).isEmpty && reader.fetched.max() == 11)
    }
}
