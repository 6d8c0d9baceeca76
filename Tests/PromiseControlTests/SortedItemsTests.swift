import PromiseCore
import PromiseDomain
import PromiseQuery
import Testing

/// The first results of a sorted query, while there are many.
@Suite struct SortedItemsTests {
    private func item(_ entry: Int64, _ size: Int64?) -> FoundItem {
        FoundItem(
            id: EntryID(entry), node: NodeID(UInt64(entry)), path: [FileName("document")!], kind: .file, size: 1,
            modificationTime: .zero, identifier: nil, state: .current, isUploaded: true,
            values: size.map { [.size: .integer($0)] } ?? [:])
    }

    /// All matches were kept for the one that was asked for, and more than two millions of them were an error.
    @Test func noMoreIsKeptThanIsAskedFor() {
        var items = SortedItems(by: [.init(key: .size, isDescending: true)], limit: 3)
        for page in 0..<200 {
            // Each number below 100,000 once.
            items.add((0..<500).map { item(Int64(page * 500 + $0), Int64((page * 500 + $0) * 7_919 % 100_000)) })
            #expect(items.count < 2_000)
        }
        #expect(items.take().map { $0.values[.size] } == [.integer(99_999), .integer(99_998), .integer(99_997)])
    }

    @Test(arguments: [0, 1, 7, 999, 1_500, 4_000, 5_000, Int.max], [false, true])
    func theFirstOnesAreThoseOfAllInTheirOrder(limit: Int, isDescending: Bool) {
        // Equal ones are in the order of their numbers, and what has no value comes last.
        let sizes: [Int64?] = (0..<4_500).map { (number: Int64) in number % 10 == 3 ? nil : number * 7_919 % 400 }
        let all = sizes.enumerated().map { item(Int64($0.offset), $0.element) }.shuffled()
        let order = [QueryRequest.Order(key: .size, isDescending: isDescending)]
        var (few, whole) = (SortedItems(by: order, limit: limit), SortedItems(by: order, limit: nil))
        for start in stride(from: 0, to: all.count, by: 90) {
            few.add(Array(all[start..<start + 90]))
            whole.add(Array(all[start..<start + 90]))
        }
        let (first, sorted) = (few.take(), whole.take())
        #expect(first == Array(sorted.prefix(limit)))
        for (left, right) in zip(sorted, sorted.dropFirst()) {
            let (size, next) = (left.values[.size] ?? .null, right.values[.size] ?? .null)
            let comparison = size.sortOrder(against: next, isDescending: isDescending)
            #expect(comparison < 0 || comparison == 0 && left.id < right.id)
        }
    }
}
