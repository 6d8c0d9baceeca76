import PromiseContent
package import PromiseCore
import PromiseFilesystem
import PromiseIndex

// The versions of a document that are known here without asking anybody.

/// One version of a document.
package struct ItemVersion: Sendable, Hashable {
    package enum Kind: String, Sendable {
        /// What the document's name shows.
        case current
        /// What the provider has, where that is another one: not followed yet, or about to be replaced by what is here.
        case provider
        /// The other side of a conflict, a file of its own until somebody deals with it.
        case conflict
        /// What the document was before; the provider has kept it.
        case earlier
    }

    package var kind: Kind
    /// Nil for the provider's, which has no name of its own here.
    package var node: NodeID?
    package var path: [FileName]
    /// The provider's name of the version; nil before the provider has it.
    package var version: ContentVersion?
    package var size: UInt64
    package var modificationTime: Timestamp
    /// The content is on this machine.
    package var isLocal: Bool
    /// Of an earlier version: the provider's name of it, as long as it is kept.
    package var earlierIdentifier: String?
    /// Of what has a node: another one after every write. What a decision about versions names.
    package var state: String?

    package init(
        kind: Kind, node: NodeID?, path: [FileName], version: ContentVersion?, size: UInt64, modificationTime: Timestamp,
        isLocal: Bool, earlierIdentifier: String? = nil, state: String? = nil
    ) {
        self.state = state
        self.earlierIdentifier = earlierIdentifier
        self.kind = kind
        self.node = node
        self.path = path
        self.version = version
        self.size = size
        self.modificationTime = modificationTime
        self.isLocal = isLocal
    }
}

struct KnownVersions {
    let index: Index
    let content: ContentStore

    /// Of a document, or of the one that an unresolved version belongs to. The first one is the current version, unless the
    /// document was removed.
    func all(of id: NodeID) throws(Failure) -> [ItemVersion] {
        if id == .root { throw Failure(.isFolder, "only documents have versions") }
        return try index.read { transaction throws(Failure) in
            guard let asked = try name(of: id, transaction) else { throw Failure(.stale, "the item is gone") }
            var document = asked
            if let other = asked.conflictsWith {
                // Of a document that was removed these are what is left.
                guard let entry = try transaction.entry(for: other) else { return try conflicts(with: other, transaction) }
                document = entry
            }
            guard let node = try transaction.node(document.node) else { throw Failure(.stale, "the item is gone") }
            guard node.kind == .file || node.kind == .link else { throw Failure(.isFolder, "only documents have versions") }
            var result = [try version(.current, of: document, node, transaction)]
            guard let identifier = document.identifier else { return result }
            if let there = try provided(identifier, node, transaction) {
                result.append(
                    ItemVersion(
                        kind: .provider, node: nil, path: result[0].path, version: there.version, size: there.size,
                        modificationTime: there.metadata.modificationTime, isLocal: false))
            }
            return result + (try conflicts(with: identifier, transaction))
        }
    }

    /// Of several names the one that is a version itself, or that has some.
    private func name(of id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Entry? {
        let names = try transaction.entries(of: id)
        guard names.count > 1 else { return names.first }
        for name in names {
            if name.conflictsWith != nil { return name }
            if let document = name.identifier, try !transaction.conflicts(with: document).isEmpty { return name }
        }
        return names.first
    }

    /// Of versions whose document was removed, those that nobody has dealt with.
    func left(of known: [ItemVersion]) throws(Failure) -> [ItemVersion] {
        try index.read { transaction throws(Failure) in
            for node in known.compactMap(\.node) {
                guard let document = try name(of: node, transaction)?.conflictsWith else { continue }
                return try conflicts(with: document, transaction)
            }
            return []
        }
    }

    private func conflicts(
        with document: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ItemVersion] {
        var result: [ItemVersion] = []
        for entry in try transaction.conflicts(with: document) {
            guard let node = try transaction.node(entry.node) else { continue }
            result.append(try version(.conflict, of: entry, node, transaction))
        }
        return result
    }

    private func version(
        _ kind: ItemVersion.Kind, of entry: Entry, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemVersion {
        guard let folder = try transaction.path(of: entry.parent) else {
            throw Failure(.gone, "the document was removed meanwhile")
        }
        let synced = try entry.identifier.flatMap { identifier throws(Failure) in try transaction.synced(identifier) }
        let isSent = synced.map { $0.edits == node.edits } ?? false
        return ItemVersion(
            kind: kind, node: node.id, path: folder + [entry.name], version: isSent ? node.version : nil, size: node.size,
            modificationTime: node.modificationTime, isLocal: node.kind == .link || node.content == .whole,
            state: try node.state(in: content))
    }

    /// What the provider has, when that is not what is here.
    private func provided(
        _ identifier: ItemIdentifier, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        if case .present(let item)? = try transaction.remote(identifier) { return item.version == node.version ? nil : item }
        guard let synced = try transaction.synced(identifier), synced.edits != node.edits else { return nil }
        return synced.item
    }
}
