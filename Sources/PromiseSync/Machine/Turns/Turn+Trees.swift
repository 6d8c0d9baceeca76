package import PromiseCore
package import PromiseIndex
import PromiseProvider

// What is known of items in the three trees, and agreeing on them.

extension Turn {
    // MARK: Identifiers and nodes

    func node(
        for identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> NodeID? {
        if identifier == facts.rootIdentifier { return .root }
        return try transaction.entry(for: identifier)?.node
    }

    /// The provider's name of a folder or of a node's first name; nil while the provider has none.
    func identifier(
        of node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        if node == .root { return facts.rootIdentifier }
        return try transaction.entries(of: node).first?.identifier
    }

    func reference(
        to identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemReference? {
        guard let path = try transaction.remotePath(of: identifier) else { return nil }
        return ItemReference(identifier: identifier, path: path)
    }

    /// What the provider has, by all that is known.
    func known(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Item? {
        if case .present(let item)? = try transaction.remote(identifier) { return item }
        return try transaction.synced(identifier)?.item
    }

    /// Nil for what is no folder here, or none whose content is known.
    func knownFolder(
        _ identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> NodeID? {
        guard let node = try node(for: identifier, transaction),
            let row = try transaction.node(node)
        else {
            return nil
        }
        return row.isPopulated ? node : nil
    }

    /// An item is a folder, or below it, by what is known of the provider.
    func isInside(
        _ item: ItemIdentifier, _ folder: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        var current: ItemIdentifier? = item
        // No real path is this deep.
        for _ in 0..<4096 {
            guard let identifier = current else { return false }
            if identifier == folder { return true }
            if identifier == facts.rootIdentifier { return false }
            current = try known(identifier, transaction)?.parent
        }
        return true
    }

    // MARK: Observing

    func observation(
        of identifier: ItemIdentifier?, _ entry: Entry?, _ transaction: borrowing Transaction
    ) throws(Failure) -> Observation {
        let synced = try identifier.flatMap { identifier throws(Failure) in
            try transaction.synced(identifier)
        }
        let remote = try identifier.flatMap { identifier throws(Failure) in
            try transaction.remote(identifier)
        }
        guard let entry, let node = try lookAt(entry.node, transaction) else {
            return Observation(local: nil, synced: synced?.item, remote: remote)
        }
        let isEdited =
            switch node.kind {
            case .file: synced.map { $0.edits != node.edits } ?? true
            case .link:
                synced.map { $0.item.target != node.target || $0.edits != node.edits } ?? true
            // One that was made anew under the item of another, which may have been removed there
            // before anybody heard of it.
            case .folder: synced.map { $0.edits != node.edits } ?? false
            default: false
            }
        let local = Observation.Local(
            parent: try self.identifier(of: entry.parent, transaction), name: entry.name,
            kind: node.kind,
            isEdited: isEdited, metadata: Metadata(node))
        return Observation(local: local, synced: synced?.item, remote: remote)
    }

    /// The node, with what a program that has it open has written to it so far: that is an edit
    /// from the first byte.
    private func lookAt(_ id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Node?
    {
        guard let node = try transaction.node(id), node.kind == .file, node.isOpenForWriting else {
            return try transaction.node(id)
        }
        try world.observer.noteOpenWrites(of: id, transaction)
        return try transaction.node(id)
    }

    /// What the provider says of a known item is stored where it differs from what was agreed on.
    mutating func observe(
        _ item: Item, synced: SyncedItem?, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let isSame = synced.map { item.isSame(as: $0.item) } ?? false
        if !isSame, try recognize(item, transaction) { return }
        if isSame {
            if try transaction.remote(item.identifier) != nil {
                try transaction.setRemote(item.identifier, nil)
            }
        } else {
            try transaction.setRemote(item.identifier, .present(item))
            noteDivergence()
        }
    }

    // MARK: Agreeing

    /// Both sides agree on `item` now. `edits`: the node's edits that the provider has; nil: as
    /// before.
    func agree(on item: Item, edits: UInt64?, _ transaction: borrowing Transaction) throws(Failure)
    {
        let before = try transaction.synced(item.identifier)?.edits ?? 0
        try transaction.setSynced(SyncedItem(item: item, edits: edits ?? before))
        try transaction.setRemote(item.identifier, nil)
    }

    /// Both sides agree on content and metadata of `item`. A place it moved to stays to be
    /// followed: agreed on with the rest, it would make the place here look like a move made here,
    /// and undo theirs.
    mutating func agreeOnContent(
        of item: Item, edits: UInt64, _ transaction: borrowing Transaction
    ) throws(Failure) {
        var agreed = item
        if let before = try transaction.synced(item.identifier)?.item {
            agreed.parent = before.parent
            agreed.name = before.name
        }
        try transaction.setSynced(SyncedItem(item: agreed, edits: edits))
        if agreed.isSame(as: item) {
            try transaction.setRemote(item.identifier, nil)
        } else {
            try transaction.setRemote(item.identifier, .present(item))
            noteDivergence()
        }
    }

    /// Nothing is agreed on about the item any more, and nothing that was sent to it is to be
    /// recognised: under its identifier something else may stand here next. `keepsMoves`: but for
    /// where it may have been moved.
    func forgetItem(
        _ identifier: ItemIdentifier, keepsMoves: Bool = false, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try transaction.deleteSent(of: identifier, keepsMoves: keepsMoves)
        try transaction.deleteSynced(identifier)
        try transaction.setRemote(identifier, nil)
    }

    /// Makes sure that pending work is planned again soon.
    func remind(_ subject: Pending.Subject, _ transaction: borrowing Transaction) throws(Failure) {
        if try transaction.pending(subject) == nil {
            try transaction.setPending(Pending(subject: subject, since: now.time, due: now.time))
        }
    }

    /// Whatever waited for this folder to exist at the provider may go on.
    mutating func unblock(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) {
        let subjects = memory.operations.blocked.subjects(of: folder)
        if subjects.isEmpty { return }
        remember { $0.operations.blocked.remove(folder) }
        try makeDue(subjects, transaction)
    }

    func makeDue(_ subjects: Set<Pending.Subject>, _ transaction: borrowing Transaction)
        throws(Failure)
    {
        for subject in subjects {
            guard var row = try transaction.pending(subject) else { continue }
            row.due = now.time
            try transaction.setPending(row)
        }
    }
}

extension Item {
    func isSame(as other: Item) -> Bool {
        parent == other.parent && name == other.name && version == other.version
            && kind == other.kind
            && !differs(metadata, other.metadata, kind: kind) && !hasNewTime(self, than: other)
    }
}

extension Metadata {
    package init(_ node: Node) {
        self.init(
            mode: node.mode, owner: node.owner, group: node.group,
            modificationTime: node.modificationTime)
    }
}
