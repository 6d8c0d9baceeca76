import PromiseCore

/// Which files programs may write to through a mapping of the content file, of which neither the kernel's pages nor this daemon
/// hear: a mapping outlives the descriptor that it was made of. Pure; grows up to a limit and is then of no use.
struct PossiblyMapped {
    /// About 2 MiB.
    static let countMax = 65_536

    private var nodes: Set<NodeID> = []
    /// Any may be.
    private var isGivenUp = false

    func contains(_ node: NodeID) -> Bool { isGivenUp || nodes.contains(node) }

    /// It was opened by passthrough for reading and writing, as a shared mapping that writes needs (mmap(2)).
    mutating func insert(_ node: NodeID) {
        guard !isGivenUp else { return }
        nodes.insert(node)
        if nodes.count > Self.countMax { giveUp() }
    }

    /// Nothing is known, as after a daemon that others went on without.
    mutating func giveUp() {
        isGivenUp = true
        nodes = []
    }
}
