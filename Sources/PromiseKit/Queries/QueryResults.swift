public import PromiseWire

/// What a query has told so far, as NSMetadataQuery keeps it: its results, grouped by an attribute, and lists of values.
///
///     let query = MetadataQuery("kMDItemFSSize > 0").attributes("kMDItemContentType").live()
///     var results = QueryResults(valuesOf: ["kMDItemContentType"])
///     for try await update in try await query.updates(of: client) {
///         results.apply(update)
///         for (type, count) in results.values(of: "kMDItemContentType") { print(type, count) }
///     }
///
/// An update costs by what it tells. Not reading the updates is to disable them: the daemon keeps them, up to 20,000 items, and
/// starts again with `reset` when it was longer.
public struct QueryResults: Sendable {
    private var found: [Int64: FoundItemDocument] = [:]
    private var counts: [String: [WireValue: Int]]
    /// Everything there was has been told.
    public private(set) var isComplete = false

    /// `keys`: attributes whose values are to be counted, which the query must be told to give.
    public init(valuesOf keys: [String] = []) {
        counts = Dictionary(keys.map { ($0, [:]) }) { first, _ in first }
    }

    public var count: Int { found.count }

    public subscript(id: Int64) -> FoundItemDocument? { found[id] }

    /// By their `id`.
    public var items: [FoundItemDocument] { found.values.sorted { $0.id < $1.id } }

    public mutating func apply(_ update: MetadataQuery.Update) {
        switch update {
        case .added(let items), .changed(let items): for item in items { put(item, for: item.id) }
        case .removed(let ids): for id in ids { put(nil, for: id) }
        case .finishedGathering: isComplete = true
        case .reset: self = QueryResults(valuesOf: Array(counts.keys))
        }
    }

    /// The values that an attribute has among the results, and of how many; of a list each of its elements counts. `.null` is
    /// not known. The most frequent first. Traps for a key that was not given to the initializer.
    public func values(of key: String) -> [(value: WireValue, count: Int)] {
        guard let values = counts[key] else { preconditionFailure("the values of '\(key)' are not counted") }
        return values.map { ($0.key, $0.value) }.sorted {
            $0.count != $1.count ? $0.count > $1.count : WireCoding.text($0.value) < WireCoding.text($1.value)
        }
    }

    /// The results by the value of an attribute, which the query must be told to give; `.null`: not known.
    public func grouped(by key: String) -> [WireValue: [FoundItemDocument]] {
        Dictionary(grouping: items) { $0.attributes?[key] ?? .null }
    }

    private mutating func put(_ item: FoundItemDocument?, for id: Int64) {
        let old = found[id]
        found[id] = item
        for key in counts.keys {
            for value in QueryResults.values(of: key, in: old) {
                let rest = (counts[key]?[value] ?? 0) - 1
                counts[key]?[value] = rest > 0 ? rest : nil
            }
            for value in QueryResults.values(of: key, in: item) { counts[key]?[value, default: 0] += 1 }
        }
    }

    private static func values(of key: String, in item: FoundItemDocument?) -> [WireValue] {
        guard let item else { return [] }
        switch item.attributes?[key] {
        case .list(let values)?: return Array(Set(values))
        case let value?: return [value]
        case nil: return [.null]
        }
    }
}
