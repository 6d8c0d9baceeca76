import PromiseCore
import PromiseIndex

/// What fetches that did not end well have left of files whose job has ended: it is in the content file, and nobody has
/// said of which version it is. The next job goes on with it, and does not count it as proven. In memory alone: after a
/// kill what the rows say counts.
struct UnprovenLeftovers {
    struct Leftover {
        var generation: Generation
        /// Of the file, so that nothing is taken for left that a cut has removed.
        var size: UInt64
        var ranges: ByteRangeSet
    }

    /// Of more nobody knows, and they are fetched again, or taken for proven.
    private static let countMax = 4_096
    private var leftovers: [NodeID: Leftover] = [:]

    mutating func keep(_ leftover: Leftover, of node: NodeID) {
        if leftovers.count >= UnprovenLeftovers.countMax { leftovers = [:] }
        leftovers[node] = leftover.ranges.isEmpty ? nil : leftover
    }

    mutating func forget(_ node: NodeID) { leftovers[node] = nil }

    func of(_ node: Node) -> ByteRangeSet {
        guard let found = leftovers[node.id], found.generation == node.generation, found.size == node.size
        else { return ByteRangeSet() }
        return found.ranges
    }
}

extension HydrationPlan {
    /// Of a file of which something is here: `present` as the rows have it. Those of a file that was edited here have
    /// nothing of `left`, and those of another one have all of it that is still there.
    init(
        of node: Node, present: ByteRangeSet, left: ByteRangeSet, sizes: FetchSizes, _ transaction: borrowing Transaction
    ) throws(Failure) {
        let isOurs = left.isEmpty ? false : try transaction.hasOurs(node)
        self.init(
            size: node.size, present: present, unproven: isOurs ? left : left.without(left.without(present)),
            sizes: sizes)
    }
}
