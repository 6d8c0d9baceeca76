package import PromiseCore
import PromiseIndex
import PromiseQuery

/// An item by one of its names: what is promised of a name is that name's, also of a file that has several.
package struct NamedItem: Hashable, Sendable {
    package var node: NodeID
    /// Nil: of the root, or where any of its names will do.
    package var entry: EntryID?

    package init(node: NodeID, entry: EntryID? = nil) {
        self.node = node
        self.entry = entry
    }

    init(_ entry: Entry) { self.init(node: entry.node, entry: entry.id) }

    /// Nil when it has no name any more.
    func path(_ transaction: borrowing Transaction) throws(Failure) -> [FileName]? {
        guard let entry, let name = try transaction.entry(entry), name.node == node else {
            return try transaction.path(of: node)
        }
        return try transaction.path(of: name.parent).map { $0 + [name.name] }
    }
}

/// Looks up promised values, of many items a few at a time.
struct ValueReader {
    /// Items whose values are looked up while the index's lock is held.
    private static let countPerLook = 200

    private let index: Index
    private let hub: QueryHub

    init(_ index: Index, _ hub: QueryHub) {
        self.index = index
        self.hub = hub
    }

    func values(of items: [NamedItem], _ keys: [AttributeKey]) throws(Failure) -> [PromisedValues] {
        var result: [PromisedValues] = []
        var rest = items[...]
        while !rest.isEmpty {
            try index.read { transaction throws(Failure) in
                for item in rest.prefix(ValueReader.countPerLook) {
                    if let values = try values(of: item, keys, transaction) { result.append(values) }
                }
            }
            rest = rest.dropFirst(ValueReader.countPerLook)
        }
        return result
    }

    private func values(
        of item: NamedItem, _ keys: [AttributeKey], _ transaction: borrowing Transaction
    ) throws(Failure) -> PromisedValues? {
        if item.node == .root {
            return PromisedValues(node: .root, path: [], values: [.path: .text([UInt8(ascii: "/")])])
        }
        let names = try transaction.items(of: [item.node])
        guard let found = names.first(where: { $0.entry.id == item.entry }) ?? names.first else { return nil }
        let needs = ItemAttributes.Needs(Set(keys)).union(.path)
        let attributes = try hub.attributes(of: found, needs, transaction)
        guard let path = attributes.path else { return nil }
        let values = keys.map { ($0, attributes.value(of: $0)) }.filter { $0.1 != .null }
        return PromisedValues(node: item.node, path: path, values: Dictionary(values) { first, _ in first })
    }
}
