import Logging
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

// Names that the provider no longer has go here, too. What somebody here moved there, works on or
// has the provider told of does not go with them.

extension Tree {
    /// Whether the provider is just being told of the entry, or of something that is in it here.
    /// The outcome will say where that is.
    static func isUnderWay(
        below entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        for operation in turn.memory.operations.running.values {
            guard case .entry(let id) = operation.subject, let other = try transaction.entry(id)
            else { continue }
            if other.id == entry.id { return true }
            if try transaction.isInside(other.parent, entry.node) { return true }
        }
        return false
    }

    /// Removes a name that the provider no longer has, with everything below it that was not edited
    /// here and not moved there here; false when something was, and the name stays.
    @discardableResult
    static func removeLocal(
        _ entry: Entry, depth: Int, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        let observation = try turn.observation(of: entry.identifier, entry, transaction)
        guard let node = try transaction.node(entry.node) else { return true }
        var (entry, isEmpty) = (entry, true)
        if node.kind == .folder {
            isEmpty = try removeChildren(
                of: entry, isMadeAnew: observation.local?.isEdited == true, depth, &turn, transaction)
            // A child that others moved to the folder's own place has made it go, or has its name now.
            guard let left = try transaction.entry(entry.id) else { return true }
            entry = left
        }
        let isNewHere = observation.synced == nil && !entry.isExcluded
        if !isEmpty || isNewHere || observation.local?.isEdited == true
            || entry.isExcluded && node.kind == .file && node.size > 0
        {
            try keepAsNew(entry, &turn, transaction)
            return false
        }
        try takeAway(entry, node, &turn, transaction)
        try NamesWithoutItem.end(of: node.id, isReplaced: false, &turn, transaction)
        return true
    }

    static func takeAway(
        _ entry: Entry, _ node: Node, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        try GoneContent.note(entry, &turn, transaction)
        // Nobody here has removed it: what it was sent for is not told to be deleted.
        try transaction.deleteSent(for: entry.id)
        try transaction.delete(entry.id)
        if node.kind == .folder { try transaction.countSubfolders(of: entry.parent, -1) }
        try release(node, of: entry, replacedBy: nil, &turn, transaction)
        if let identifier = entry.identifier {
            try forget(identifier, of: entry, &turn, transaction)
        }
        try transaction.record(.deleted, node: node.id, parent: entry.parent, name: entry.name)
        try transaction.recordVersion(.versionLost, entry)
        turn.notices.entries.append((entry.parent, entry.name))
        turn.notices.tree.append(.gone(entry.treePlace, node))
    }

    /// True when nothing is left in the folder, nor sent there by a circle of folders of others.
    private static func removeChildren(
        of folder: Entry, isMadeAnew: Bool, _ depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        var isEmpty = true
        for known in try transaction.children(of: folder.node) {
            // What was done about one before may have taken another one away.
            guard let child = try transaction.entry(known.id), child.parent == folder.node else { continue }
            switch try whereabouts(of: child, in: folder, isMadeAnew: isMadeAnew, &turn, transaction) {
            case .gone:
                if try !removeLocal(child, depth: depth + 1, &turn, transaction) { isEmpty = false }
            case .onItsWay:
                try turn.remind(.entry(child.id), transaction)
                isEmpty = false
            case .elsewhere(let item):
                if try sendBack(child, to: item, depth, &turn, transaction) { continue }
                if try !removeLocal(child, depth: depth + 1, &turn, transaction) { isEmpty = false }
            }
        }
        return try isEmpty ? !transaction.hasChildren(folder.node) : false
    }

    private enum Whereabouts {
        /// In the folder, and gone with it.
        case gone
        /// On its way to a folder that was made anew here under the name of a removed one, or from
        /// a place that it has for a moment only.
        case onItsWay
        /// It was moved here to the folder, of which the provider was not told: it is where it was.
        case elsewhere(Item)
    }

    private static func whereabouts(
        of child: Entry, in folder: Entry, isMadeAnew: Bool, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Whereabouts {
        guard let identifier = child.identifier,
            let agreed = try transaction.synced(identifier)?.item
        else { return .gone }
        switch try transaction.remote(identifier) {
        case .deleted: return .gone
        case .present(let item): return item.parent == folder.identifier ? .gone : .elsewhere(item)
        case nil: break
        }
        if agreed.parent == folder.identifier { return .gone }
        return isMadeAnew || AsideName.isOne(agreed.name) ? .onItsWay : .elsewhere(agreed)
    }

    /// Moves what was moved here to a folder that is gone to where the provider has it; false when
    /// that is nowhere here.
    private static func sendBack(
        _ entry: Entry, to item: Item, _ depth: Int, _ turn: inout Turn,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard depth < 64, let parent = item.parent,
            let folder = try turn.node(for: parent, transaction),
            let node = try transaction.node(folder), node.isPopulated,
            folder == .root || node.linkCount > 0,
            try !transaction.isInside(folder, entry.parent),
            try !transaction.isInside(folder, entry.node)
        else { return false }
        turn.log(
            .notice, "an item moved here went back: others removed the folder that it was moved to")
        guard try moveLocal(entry, to: item, depth: depth + 1, &turn, transaction) else {
            return false
        }
        try turn.remind(.entry(entry.id), transaction)
        return try transaction.entry(entry.id).map { $0.parent != entry.parent } ?? true
    }

    /// The provider has lost the item, and with a folder what was in it: what is here is made there
    /// again. An item whose content is not here is gone.
    static func keepWhatIsHere(
        _ entry: Entry, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let node = try transaction.node(entry.node) else { return }
        let isOnlyPromised =
            node.kind == .file && node.content != .whole
            || node.kind == .folder && !node.isPopulated
        if isOnlyPromised {
            try removeLocal(entry, depth: 0, &turn, transaction)
            return
        }
        for child in try transaction.children(of: node.id) {
            try keepWhatIsHere(child, &turn, transaction)
        }
        try keepAsNew(entry, &turn, transaction)
    }
}
