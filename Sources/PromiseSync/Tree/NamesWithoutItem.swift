import PromiseCore
import PromiseIndex

/// Names that were given here to a file whose content was to come from the item of another one of its names,
/// and of which the provider was not told before that was gone: they would wait for the content for ever.
enum NamesWithoutItem {
    /// What is here of the content is kept; without a byte the names go, too. Nothing happens to others.
    static func end(
        of id: NodeID, isReplaced: Bool, _ turn: inout Turn, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard let node = try transaction.node(id), node.kind == .file, node.content != .whole else { return }
        let names = try transaction.entries(of: id)
        guard !names.isEmpty, names.allSatisfy({ $0.identifier == nil }) else { return }
        if try Tree.makeSparse(id, &turn, transaction) {
            for name in names where name.conflictsWith == nil {
                try Tree.moveAside(name, conflictsWith: nil, &turn, transaction)
            }
        } else if !isReplaced {
            for name in names {
                if let current = try transaction.node(id) {
                    try Tree.takeAway(name, current, &turn, transaction)
                }
            }
        }
    }
}
