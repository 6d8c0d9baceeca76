import PromiseCore
import PromiseDomain
import PromiseQuery
import PromiseWire

// Between the values of queries and the documents of the protocol.

extension QueryValue {
    init(_ value: WireValue) {
        switch value {
        case .null: self = .null
        case .truth(let value): self = .truth(value)
        case .integer(let value): self = .integer(value)
        case .real(let value): self = .real(value)
        case .text(let value): self = .text(value)
        case .list(let values): self = .list(values.map { QueryValue($0) })
        }
    }
}

extension WireValue {
    init(_ value: QueryValue) {
        switch value {
        case .null: self = .null
        case .truth(let value): self = .truth(value)
        case .integer(let value): self = .integer(value)
        case .real(let value): self = .real(value)
        case .text(let value): self = .text(String(decoding: value, as: UTF8.self))
        case .time(let value): self = .text(TimeText.format(nanoseconds: value))
        case .list(let values): self = .list(values.map { WireValue($0) })
        }
    }
}

extension [AttributeKey: QueryValue] {
    /// By the keys' names.
    var wire: [String: WireValue] {
        [String: WireValue](uniqueKeysWithValues: map { ($0.key.rawValue, WireValue($0.value)) })
    }
}

extension FoundItemDocument {
    init(_ item: FoundItem) {
        let path = PathText(item.path)
        let attributes = item.values.map { ($0.key.rawValue, WireValue($0.value)) }
        self.init(
            id: item.id.rawValue, node: item.node.rawValue, path: path.display, pathBytes: path.bytes, kind: item.kind.wireName,
            size: item.size, modificationTime: item.modificationTime.wireText, identifier: item.identifier?.rawValue,
            state: item.state.rawValue, isUploaded: item.isUploaded,
            attributes: attributes.isEmpty ? nil : Dictionary(attributes) { $1 })
    }
}

extension QueryEvent {
    /// Nil for what is no event to the client.
    var name: String? {
        switch self {
        case .added: "added"
        case .gathered: "gathered"
        case .changed: "changed"
        case .removed: "removed"
        case .reset: "reset"
        case .alive: nil
        }
    }

    /// In pieces that a reader can hold.
    var parts: [QueryEventDocument] {
        switch self {
        case .added(let items), .changed(let items):
            pieces(of: items).map { QueryEventDocument(sequence: 0, items: $0.map { FoundItemDocument($0) }) }
        case .removed(let items): pieces(of: items).map { QueryEventDocument(sequence: 0, removed: $0.map(\.id.rawValue)) }
        case .gathered, .reset: [QueryEventDocument(sequence: 0)]
        case .alive: []
        }
    }

    private func pieces<Item>(of items: [Item]) -> [ArraySlice<Item>] {
        stride(from: 0, to: items.count, by: 500).map { items[$0..<min($0 + 500, items.count)] }
    }
}

extension ChangesDocument {
    init(_ page: ChangePage, since: Int64) {
        let changes = page.changes.map { change in
            let path = change.path.map { PathText($0) }
            var document = ChangeDocument(
                sequence: change.sequence, kind: change.kind, node: change.node.rawValue, count: change.count,
                parent: change.parent.rawValue, name: change.name?.display, path: path?.display, pathBytes: path?.bytes)
            document.nameBytes = change.name.map { PercentCoding.encode($0.bytes) }
            document.oldParent = change.oldParent?.rawValue
            document.oldName = change.oldName?.display
            document.oldNameBytes = change.oldName.map { PercentCoding.encode($0.bytes) }
            document.oldNode = change.oldNode?.rawValue
            return document
        }
        self.init(
            changes: changes, first: page.first, last: page.last, isIncomplete: page.first > 1 && since < page.first - 1)
        journal = page.journal
    }
}
