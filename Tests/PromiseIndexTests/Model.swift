import PromiseCore
import PromiseIndex
import Testing

/// What an index should hold, as plain dictionaries: the reference of `ModelTests`.
struct Model {
    var nodes: [NodeID: Node] = [:]
    var entries: [EntryID: Entry] = [:]
    var synced: [ItemIdentifier: SyncedItem] = [:]
    var remote: [ItemIdentifier: RemoteState] = [:]
    var pending: [Pending.Subject: Pending] = [:]
    var attributes: [NodeID: [[UInt8]: [UInt8]]] = [:]
    var ranges: [NodeID: ByteRangeSet] = [:]

    func children(of parent: NodeID) -> [Entry] {
        entries.values.filter { $0.parent == parent }.sorted { $0.name < $1.name }
    }

    func entries(of node: NodeID) -> [Entry] { entries.values.filter { $0.node == node }.sorted { $0.id < $1.id } }

    func entry(at parent: NodeID, _ name: FileName) -> Entry? { entries.values.first { $0.parent == parent && $0.name == name } }

    func isFolder(_ node: NodeID, inside ancestor: NodeID) -> Bool {
        var current = node
        while current != .root {
            if current == ancestor { return true }
            guard let above = entries(of: current).first else { return false }
            current = above.parent
        }
        return ancestor == .root
    }

    func remoteItems(in parent: ItemIdentifier) -> [Item] {
        let kept = synced.values.map(\.item).filter { remote[$0.identifier] == nil }
        let present = remote.values.compactMap { state -> Item? in if case .present(let item) = state { item } else { nil } }
        return (kept + present).filter { $0.parent == parent }
    }

    /// Every question that an index answers gets the model's answer.
    func expectEqual(_ transaction: borrowing Transaction, names: [FileName]) throws {
        for node in nodes.values {
            var stored = try transaction.node(node.id)
            // How the index stores what both sides agree on is its own affair.
            stored?.isAsSynced = node.isAsSynced
            #expect(stored == node)
            #expect(try transaction.entries(of: node.id) == entries(of: node.id))
            #expect(Set(try transaction.attributeNames(of: node.id)) == Set(attributes[node.id, default: [:]].keys))
            for (name, value) in attributes[node.id, default: [:]] {
                #expect(try transaction.attribute(name, of: node.id) == value)
            }
            #expect(try transaction.ranges(of: node.id) == ranges[node.id, default: ByteRangeSet()])
            guard node.kind == .folder else { continue }
            #expect(try transaction.children(of: node.id) == children(of: node.id))
            for name in names { #expect(try transaction.entry(in: node.id, named: name) == entry(at: node.id, name)) }
        }
        for entry in entries.values { #expect(try transaction.entry(entry.id) == entry) }
        for (identifier, item) in synced {
            #expect(try transaction.synced(identifier) == item)
            #expect(try transaction.entry(for: identifier) == entries.values.first { $0.identifier == identifier })
            #expect(Set(try transaction.remoteChildren(of: identifier)) == Set(remoteItems(in: identifier)))
            try expectEqualAgreement(transaction, in: identifier)
        }
        try expectEqualAgreement(transaction, in: ItemIdentifier("root"))
        #expect(Set(try transaction.remoteChildren(of: ItemIdentifier("root"))) == Set(remoteItems(in: ItemIdentifier("root"))))
        for (identifier, state) in remote { #expect(try transaction.remote(identifier) == state) }
        #expect(try transaction.divergences(limit: 10_000).count == remote.count)
        for (subject, row) in pending { #expect(try transaction.pending(subject) == row) }
        try expectEqualTotals(transaction)
    }

    /// What was agreed on at places of a folder, where the provider is not known to differ anywhere.
    private func expectEqualAgreement(_ transaction: borrowing Transaction, in folder: ItemIdentifier) throws {
        let items = synced.values.filter { $0.item.parent == folder }
        let names = items.map(\.item.name)
        guard let first = names.min(), let last = names.max() else { return }
        let isKnown = folder == ItemIdentifier("root") || entries.values.contains { $0.identifier == folder }
        let agreed = try transaction.agreedItems(in: folder, from: first, through: last)
        let count = try transaction.agreedItemCount(in: folder)
        guard remote.isEmpty && isKnown else {
            #expect(agreed.isEmpty)
            #expect(count == nil)
            return
        }
        #expect(count == items.count)
        #expect(Set(agreed.keys) == Set(names))
        for item in agreed.values { #expect(synced[item.item.identifier] == item) }
    }

    private func expectEqualTotals(_ transaction: borrowing Transaction) throws {
        let files = nodes.values.filter { $0.kind == .file }
        let local = files.filter { $0.content != .absent }
        let stays = Set(entries.values.filter { $0.isExcluded || $0.identifier == nil }.map(\.node))
        let candidates = local.filter { $0.pin != .pinned && !$0.isOpenForWriting && !stays.contains($0.id) }
        let order = candidates.sorted { ($0.lastUse, $0.id) < ($1.lastUse, $1.id) }.map(\.id)
        #expect(try transaction.evictionCandidates(limit: 10_000).map(\.id) == order)
        #expect(Set(try transaction.nodesOpenForWriting().map(\.id)) == Set(files.filter(\.isOpenForWriting).map(\.id)))
        #expect(Set(try transaction.orphans().map(\.id)) == Set(nodes.values.filter { $0.linkCount == 0 }.map(\.id)))
        #expect(Set(try transaction.populatedFolders()) == Set(nodes.values.filter(\.isPopulated).map(\.id)))
        let whole = Set(files.filter { $0.content == .whole }.map(\.id))
        #expect(Set(try transaction.nodesWithContent(in: .whole).map(\.id)) == whole)
        let counts = IndexCounts(
            nodes: nodes.count, placeholders: files.count - local.count, pending: pending.count,
            failing: pending.values.filter { $0.error != nil }.count, localBytes: nodes.values.reduce(0) { $0 + $1.localBytes })
        #expect(try transaction.counts() == counts)
    }
}
