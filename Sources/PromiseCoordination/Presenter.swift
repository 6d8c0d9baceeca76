import PromiseCore

/// Who shows an item, as the table of claims knows it.
struct Presenter: Sendable {
    var node: NodeID
    /// The folders above each name of the item, nearest first, up to the root: who changes the
    /// content by one name changes it for all of them.
    var chains: [[NodeID]]
    var purpose: Purpose?
    /// Of an item with several names the one that it shows; nil: the root, or whichever there is.
    var name: EntryID?
    /// The name that it showed has gone: it is asked no more, and told only that what it gave up is its own again.
    var isOver = false
    /// It let a deadline pass, as a stopped process does: nobody waits for it until it is heard from.
    var isSilent = false
    /// How many claims have asked it to give something up, and are there still.
    var relinquishments = 0

    init(node: NodeID, chains: [[NodeID]], purpose: Purpose?, name: EntryID?) {
        self.node = node
        self.chains = chains
        self.purpose = purpose
        self.name = name
    }

    /// Those above any of its names, each once.
    var folders: [NodeID] {
        if chains.count == 1 { return chains[0] }
        var known: Set<NodeID> = []
        return chains.flatMap { $0 }.filter { known.insert($0).inserted }
    }

    /// The item, or a folder above one of its names, is in other folders now.
    mutating func follow(_ moved: MovedName) {
        if moved.node == node {
            chains = moved.names.contains(moved.folders) ? moved.names : [moved.folders] + moved.names
            return
        }
        for (number, chain) in chains.enumerated() {
            guard let index = chain.firstIndex(of: moved.node) else { continue }
            chains[number] = chain[...index] + moved.folders
        }
    }
}
