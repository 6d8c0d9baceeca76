package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseSystem

/// Empty content files that another thread makes ahead while programs make many files and the disk is slow to: for a minute
/// after deletions ext4 walks over every inode that was given free, which takes up to a millisecond. Where the disk is not
/// slow, to wake another thread costs more than it saves.
///
/// A spare is named by a node number that the index has given to nobody else, so using it moves nothing on the disk. What is
/// left when the process ends belongs to nothing, and is removed at the next start. Thread-safe; the lock is a leaf.
package final class SpareFiles: Sendable {
    package struct Spare: Sendable {
        package let node: NodeID
        package let file: SharedDescriptor
    }

    private struct State {
        var spares: [Spare] = []
        var isFilling = false
        var isStopped = false
        /// Slow makings, less the fast ones.
        var slowCount = 0
        /// Makings were slow when they were last looked at.
        var isWorthwhile = false
        /// The first number that was ever reserved.
        var first: NodeID?

        /// True for who is to fill up.
        mutating func beginFilling() -> Bool {
            guard isWorthwhile, spares.count < SpareFiles.countMax / 2, !isFilling, !isStopped else { return false }
            isFilling = true
            return true
        }
    }

    package static let countMax = 64
    package static let slowCountMin = 8
    package static let slow = Duration.microseconds(100)

    private let index: Index
    private let content: ContentStore
    private let clock: any TimeSource
    private let workers: BlockingPool
    private let state = RankedMutex(.leaf, State())

    package init(index: Index, content: ContentStore, clock: any TimeSource, workers: BlockingPool) {
        self.index = index
        self.content = content
        self.clock = clock
        self.workers = workers
    }

    /// A spare for the caller alone, who enters a node of its number in the same transaction. Nil when there is none.
    package func take() -> Spare? {
        let (spare, isWanted): (Spare?, Bool) = state.withLock { state in
            let spare = state.spares.isEmpty ? nil : state.spares.removeFirst()
            return (spare, state.beginFilling())
        }
        if isWanted { workers.submit { [self] in fill() } }
        return spare
    }

    /// How long it took to make a content file for want of a spare.
    package func note(making time: Duration) {
        let isWanted = state.withLock { state in
            state.slowCount = max(0, state.slowCount + (time >= Self.slow ? 1 : -1))
            if state.slowCount >= Self.slowCountMin { state.isWorthwhile = true }
            return state.beginFilling()
        }
        if isWanted { workers.submit { [self] in fill() } }
    }

    /// Whether a content file of this number may be a spare, or be about to belong to a new node.
    package func mayHold(_ node: NodeID) -> Bool { state.withLock { state in state.first.map { node >= $0 } ?? false } }

    /// Removes the spares and makes no more.
    package func stop() {
        let left = state.withLock { state in
            state.isStopped = true
            defer { state.spares = [] }
            return state.spares
        }
        for spare in left { remove(spare.node) }
    }

    private func fill() {
        let count = SpareFiles.countMax - state.withLock { $0.spares.count }
        var isSlow = false
        do throws(Failure) {
            let first = try index.write { transaction throws(Failure) in try transaction.reserveNodes(count) }
            state.withLock { if $0.first == nil { $0.first = first } }
            let start = clock.uptime()
            for number in first.rawValue..<first.rawValue + UInt64(count) { try make(NodeID(number)) }
            isSlow = clock.uptime() - start >= SpareFiles.slow * count / 2
        } catch {
            // Whoever makes a file makes its content file, and hears what is wrong.
        }
        state.withLock { state in
            state.isFilling = false
            state.isWorthwhile = isSlow
            if !isSlow { state.slowCount = 0 }
        }
    }

    private func make(_ node: NodeID) throws(Failure) {
        let spare = Spare(node: node, file: SharedDescriptor(try content.create(node, Generation(0))))
        let isKept = state.withLock { state in
            if !state.isStopped { state.spares.append(spare) }
            return !state.isStopped
        }
        if !isKept { remove(node) }
    }

    private func remove(_ node: NodeID) {
        // What stays is removed at the next start.
        try? content.remove(node, Generation(0))
    }
}
