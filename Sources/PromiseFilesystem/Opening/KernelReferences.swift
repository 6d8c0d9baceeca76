import PromiseCore
import PromiseIndex

/// Memory of what the kernel holds.
struct KernelReferences {
    var lookups: [NodeID: UInt64] = [:]
    /// A daemon before this one has told the kernel of nodes, and nobody has counted of which.
    var areInherited = false
    /// Removed nodes that the kernel still names: they answer `stat` until it forgets them.
    private(set) var ghosts: [NodeID: Node] = [:]
    /// Those of which it is not known whether it does, the oldest first.
    private var guessed: [NodeID] = []
    /// What it does not name is never forgotten.
    private static let guessedCountMax = 4_096

    /// It was removed. Of what was not looked up since the daemon before has died only folders are
    /// kept: one may be where a program works, and files come in masses.
    mutating func keep(_ node: Node) {
        if lookups[node.id] == nil {
            guard areInherited, node.kind == .folder else { return }
            if guessed.count >= Self.guessedCountMax { ghosts[guessed.removeFirst()] = nil }
            guessed.append(node.id)
        }
        ghosts[node.id] = node
    }

    /// Unless the kernel has forgotten it meanwhile.
    mutating func change(_ ghost: Node) {
        if ghosts[ghost.id] != nil { ghosts[ghost.id] = ghost }
    }

    mutating func forget(_ node: NodeID, lookups count: UInt64) {
        let known = lookups[node, default: 0]
        guard known <= count else { return lookups[node] = known - count }
        lookups[node] = nil
        guard ghosts.removeValue(forKey: node) != nil else { return }
        if let position = guessed.firstIndex(of: node) { guessed.remove(at: position) }
    }
}
