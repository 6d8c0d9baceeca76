import PromiseQuery

/// The results of a sorted query, or the first of them: no more are kept than about twice what is
/// asked for.
package struct SortedItems {
    private typealias Row = (item: FoundItem, keys: [QueryValue])

    /// More are given up seldom, so that each costs little.
    private static let spareCountMin = 1_000

    private let order: [QueryRequest.Order]
    private let limit: Int?
    private var rows: [Row] = []
    /// Every one of the first results comes before this one, or is it.
    private var last: Row?

    /// `limit`: nil for all of them.
    package init(by order: [QueryRequest.Order], limit: Int?) {
        self.order = order
        self.limit = limit
    }

    package var count: Int { rows.count }

    package mutating func add(_ items: [FoundItem]) {
        for item in items {
            let row = (item, order.map { item.values[$0.key] ?? .null })
            if let last, !isBefore(row, last) { continue }
            rows.append(row)
        }
        if let limit, rows.count - limit >= max(limit, SortedItems.spareCountMin) {
            giveUpRest(limit)
        }
    }

    /// In their order.
    package mutating func take() -> [FoundItem] {
        let result = sortedRows().prefix(limit ?? .max).map(\.item)
        rows = []
        return result
    }

    private mutating func giveUpRest(_ limit: Int) {
        rows = Array(sortedRows().prefix(limit))
        last = rows.last
    }

    private func sortedRows() -> [Row] { rows.sorted { isBefore($0, $1) } }

    private func isBefore(_ left: Row, _ right: Row) -> Bool {
        for (index, order) in order.enumerated() {
            let comparison = left.keys[index].sortOrder(
                against: right.keys[index], isDescending: order.isDescending)
            if comparison != 0 { return comparison < 0 }
        }
        return left.item.id < right.item.id
    }
}
