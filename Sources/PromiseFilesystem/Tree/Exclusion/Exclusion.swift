import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

/// What stays on this machine: by its own name, an attribute, by its folder, or as a companion of an open database beside it.
struct Exclusion {
    let rules: ExclusionRules
    let content: ContentStore
    let opens: OpenTable
    let ignores: IgnoreFiles

    /// `node`: what has or gets the name, when it is there already.
    func covers(
        _ name: FileName, _ kind: NodeKind, in parent: NodeID, of node: NodeID? = nil, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if let node, try marks.isMarked(node, transaction) { return true }
        if try coversByName(name, kind, in: parent, transaction) { return true }
        if try covers(parent, transaction) { return true }
        return try marks.cover(parent, transaction)
    }

    /// A folder, so everything that is made below it.
    func covers(_ folder: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard folder != .root else { return false }
        return try transaction.entries(of: folder).first?.isExcluded ?? false
    }

    /// What the folder says is not looked at.
    func coversByName(
        _ name: FileName, _ kind: NodeKind, in parent: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if !kind.isStorable || rules.excludes(name, isFolder: kind == .folder) { return true }
        let isIgnored = try ignores.excludes(
            name, isFolder: kind == .folder, in: parent, own: rules.own, content, transaction)
        if let isIgnored { return isIgnored }
        guard kind == .file, let database = ExclusionRules.databaseName(ofCompanion: name),
            let entry = try transaction.entry(in: parent, named: database)
        else { return false }
        return try isOpenDatabase(entry.node, transaction)
    }

    /// SQLite makes its companions of an empty file, too, before it writes to that for the first time.
    private func isOpenDatabase(
        _ id: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard opens.isOpen(id), let node = try transaction.node(id), node.kind == .file,
            let file = try? content.open(id, node.generation, writable: false)
        else { return false }
        let expected = ExclusionRules.databaseBeginning
        var bytes = [UInt8](repeating: 0, count: expected.count)
        let count = bytes.withUnsafeMutableBytes { buffer in
            try? readFully(file.number, into: buffer, at: 0, label: "filesystem.database")
        }
        return count == 0 || bytes == expected
    }

    /// The item whose file was removed, or was renamed to a name that stays here, which the provider was not told of yet:
    /// that file is a backup, and loses the item to the document that is made anew. Nil when it is neither. `isRunning`: the
    /// provider is being told of an entry.
    func takeItem(
        _ synced: SyncedItem, _ transaction: borrowing Transaction, isRunning: (EntryID) -> Bool
    ) throws(Failure) -> SyncedItem? {
        let identifier = synced.item.identifier
        guard var backup = try transaction.entry(for: identifier) else {
            return try transaction.pending(.deletion(identifier)) == nil ? nil : synced
        }
        guard !isRunning(backup.id), synced.item.name != backup.name,
            let node = try transaction.node(backup.node), node.kind == .file, node.content == .whole,
            try coversByName(backup.name, node.kind, in: backup.parent, transaction)
        else { return nil }
        try transaction.rememberPin(node.pin, of: identifier)
        try transaction.deletePending(.entry(backup.id))
        backup.identifier = nil
        backup.isExcluded = true
        try transaction.update(backup)
        return synced
    }
}
