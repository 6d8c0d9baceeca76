package import PromiseCore

/// Registrations of content files that were read and that nobody has open any more, for the next open of the same file: it
/// then costs no system call. A resting registration takes no descriptor of this process, but it keeps the content file's
/// room on the disk, so whoever removes content drops it.
///
/// A value under the lock of `OpenTable`. What it hands back is to be released outside of it.
package struct RestingBackings {
    private struct Resting {
        var backing: BackingID
        var generation: Generation
        var turn: UInt64
    }

    private let countMax: Int
    private var resting: [NodeID: Resting] = [:]
    /// In the order in which they came to rest; one that was taken up again is still in it, with a turn that is over.
    private var queue: [(node: NodeID, turn: UInt64)] = []
    private var head = 0
    private var turns: UInt64 = 0

    package init(countMax: Int) { self.countMax = countMax }

    package var count: Int { resting.count }

    /// Hands back what has to be released: the one that has rested longest, when there are too many.
    package mutating func rest(_ backing: BackingID, _ node: NodeID, _ generation: Generation) -> [BackingID] {
        var surplus: [BackingID] = []
        if let older = drop(node) { surplus.append(older) }
        turns += 1
        resting[node] = Resting(backing: backing, generation: generation, turn: turns)
        queue.append((node, turns))
        while resting.count > countMax, let oldest = next(), let backing = drop(oldest) { surplus.append(backing) }
        if head > countMax || queue.count - head > 2 * countMax { compact() }
        return surplus
    }

    /// The registration, when it is of this generation; it rests no more.
    package mutating func take(_ node: NodeID, _ generation: Generation) -> BackingID? {
        guard let found = resting[node], found.generation == generation else { return nil }
        return drop(node)
    }

    package func holds(_ node: NodeID) -> Bool { resting[node] != nil }

    package mutating func drop(_ node: NodeID) -> BackingID? { resting.removeValue(forKey: node)?.backing }

    private mutating func next() -> NodeID? {
        while head < queue.count {
            let (node, turn) = queue[head]
            head += 1
            if resting[node]?.turn == turn { return node }
        }
        return nil
    }

    private mutating func compact() {
        queue = queue[head...].filter { resting[$0.node]?.turn == $0.turn }
        head = 0
    }
}
