import PromiseCore
import PromiseIndex

/// What makes a node reachable in a view.
struct Reach: Hashable {
    var rights = ViewRights.none
    /// The entry of the root that it is below.
    var root: EntryID?
}

extension ViewRoots {
    /// Nil of a node without a name. The document itself counts, not what a program has made of it in
    /// its scratch folder.
    func reach(
        _ node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> Reach? {
        let entries = try transaction.entries(of: node)
        if entries.isEmpty { return nil }
        var best = Reach()
        var temporary = Reach()
        var hasPlace = false
        for entry in entries {
            let found = try reach(entry, transaction)
            if found.root.flatMap({ byEntry[$0]?.place }) == .scratch {
                temporary = found
            } else {
                hasPlace = true
                if found.rights > best.rights { best = found }
            }
        }
        return hasPlace ? best : temporary
    }

    /// Where the view has a document, from its root; nil of what was not given.
    func path(of node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> [FileName]? {
        for name in try transaction.entries(of: node) {
            var (entry, names) = (name, [FileName]())
            for _ in 0..<4096 {
                if let root = byEntry[entry.id], root.rights > .none, root.place != .scratch {
                    return (root.place == .top ? [root.name] : [View.granted, root.name]) + names.reversed()
                }
                names.append(entry.name)
                guard entry.parent != .root, let above = try transaction.entries(of: entry.parent).first else { break }
                entry = above
            }
        }
        return nil
    }

    /// The most that any folder above gives.
    private func reach(
        _ entry: Entry, _ transaction: borrowing Transaction
    ) throws(Failure) -> Reach {
        var best = Reach()
        var entry = entry
        // No tree is that deep: a circle in a damaged index must not hold up the mount.
        for _ in 0..<4096 {
            if let root = byEntry[entry.id], root.rights > best.rights {
                best = Reach(rights: root.rights, root: root.entry)
            }
            guard entry.parent != .root, let above = try transaction.entries(of: entry.parent).first
            else { return best }
            entry = above
        }
        return best
    }
}
