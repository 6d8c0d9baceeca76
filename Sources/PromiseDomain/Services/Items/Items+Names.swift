package import PromiseCore
import PromiseIndex

/// What an item is called now.
extension Items {
    /// Where a node is now; nil when it has gone.
    package func currentPath(of node: NodeID) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in try transaction.path(of: node) }
    }

    /// Of several names the one that is below the folder, where one is.
    package func currentPath(of node: NodeID, inside folder: NodeID) throws(Failure) -> [FileName]?
    {
        try index.read { transaction throws(Failure) in
            let names = try transaction.entries(of: node)
            for name in names where names.count > 1 {
                guard try transaction.foldersAbove(name)?.contains(folder) == true else { continue }
                return try transaction.path(of: name.parent).map { $0 + [name.name] }
            }
            return try transaction.path(of: node)
        }
    }

    /// What a presenter presents stays the same name of a document, whatever node that has: nil for
    /// the root. Of several names that at `path`.
    package func entry(of node: NodeID, at path: [FileName]) throws(Failure) -> EntryID? {
        try index.read { transaction throws(Failure) in
            let entries = try transaction.entries(of: node)
            for entry in entries where entries.count > 1 && entry.name == path.last {
                if try transaction.path(of: entry.parent) == Array(path.dropLast()) {
                    return entry.id
                }
            }
            return entries.first?.id
        }
    }

    /// Nil when the name has gone.
    package func currentNode(of entry: EntryID) throws(Failure) -> NodeID? {
        try index.read { transaction throws(Failure) in try transaction.entry(entry)?.node }
    }

    /// Of the name itself, where the item has several; nil when it has gone.
    package func currentPath(of entry: EntryID) throws(Failure) -> [FileName]? {
        try index.read { transaction throws(Failure) in
            guard let entry = try transaction.entry(entry) else { return nil }
            return try transaction.path(of: entry.parent).map { $0 + [entry.name] }
        }
    }
}
