import PromiseCore
import PromiseIndex

/// Mode, owner and group, which either side may have changed since both agreed. What others told
/// the provider first decides once it is known here; what was done here alone stays, and is told
/// next.
enum RightsOfBoth {
    /// After the others' part was agreed on: what is left of ours is told.
    static func remind(
        _ entry: Entry, of item: Item, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let node = try transaction.node(entry.node), node.hasOtherRights(than: item)
        else { return }
        try turn.remind(.entry(entry.id), transaction)
    }
}

/// What changes in a node changes in the items of all its names.
enum NodeNames {
    static func remind(
        _ node: NodeID, _ turn: borrowing Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for name in try transaction.entries(of: node) where !name.isExcluded {
            try turn.remind(.entry(name.id), transaction)
        }
    }
}

extension Node {
    /// What others gave to an item since `known` was agreed on.
    mutating func take(_ item: Item, since known: Item?) {
        let before = self
        take(item.metadata)
        keepRights(of: before, under: item, since: known)
    }

    /// The node that is to stand for an item has its rights. Those that others have left alone are
    /// as they are here: a change of them that was made here would be lost with their edit.
    mutating func keepRights(of before: Node, under item: Item, since known: Item?) {
        // Where the common state is made up it has others' rights, and tells not what they did.
        guard let known, known.version != .unagreed, !item.hasOtherRights(than: known)
        else { return }
        (mode, owner, group) = (before.mode, before.owner, before.group)
        if known.version != item.version {
            mode = Metadata.mode(mode, passedToContentOf: item.metadata.mode)
        }
    }

    func hasOtherRights(than item: Item) -> Bool {
        var own = item
        own.metadata = Metadata(self)
        return own.hasOtherRights(than: item)
    }
}

extension ContentVersion {
    /// Of an item that was made on both sides: nobody knows a common content.
    static let unagreed = ContentVersion("")
}
