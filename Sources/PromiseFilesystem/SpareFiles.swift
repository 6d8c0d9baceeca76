import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// Empty content files that another thread makes ahead while programs make many files: of all that a new file needs, its
/// content file takes the disk longest.
///
/// A spare is named by a node number that the index has given to nobody else, so using it moves nothing on the disk. What is
/// left when the process ends belongs to nothing, and is removed at the next start. Thread-safe; the lock is a leaf.
final class SpareFiles: Sendable {
    struct Spare: Sendable {
        let node: NodeID
        let file: SharedDescriptor
    }

    private struct State {
        var spares: [Spare] = []
        var isFilling = false
        var isStopped = false
        /// Files made without a spare since `missesSince`.
        var missCount = 0
        var missesSince = Duration.zero
        /// The first number that was ever reserved.
        var first: NodeID?
    }

    private static let countMax = 64
    /// So many files in a second are worth making files ahead.
    private static let missCountMin = 8

    private let index: Index
    private let content: ContentStore
    private let workers: BlockingPool
    private let state = Mutex(State())

    init(index: Index, content: ContentStore, workers: BlockingPool) {
        self.index = index
        self.content = content
        self.workers = workers
    }

    /// A spare for the caller alone, who enters a node of its number in the same transaction. Nil when there is none.
    func take(at now: Duration) -> Spare? {
        let (spare, isWanted): (Spare?, Bool) = state.withLock { state in
            if state.spares.isEmpty {
                if now - state.missesSince > .seconds(1) { (state.missesSince, state.missCount) = (now, 0) }
                state.missCount += 1
            }
            let spare = state.spares.isEmpty ? nil : state.spares.removeFirst()
            let isFew = spare == nil ? state.missCount >= Self.missCountMin : state.spares.count < Self.countMax / 2
            guard isFew, !state.isFilling, !state.isStopped else { return (spare, false) }
            state.isFilling = true
            return (spare, true)
        }
        if isWanted { workers.submit { [self] in fill() } }
        return spare
    }

    /// Whether a content file of this number may be a spare, or be about to belong to a new node.
    func mayHold(_ node: NodeID) -> Bool { state.withLock { state in state.first.map { node >= $0 } ?? false } }

    /// Removes the spares and makes no more.
    func stop() {
        let left = state.withLock { state in
            state.isStopped = true
            defer { state.spares = [] }
            return state.spares
        }
        for spare in left { remove(spare.node) }
    }

    private func fill() {
        let count = SpareFiles.countMax - state.withLock { $0.spares.count }
        do throws(Failure) {
            let first = try index.write { transaction throws(Failure) in try transaction.reserveNodes(count) }
            state.withLock { if $0.first == nil { $0.first = first } }
            for number in first.rawValue..<first.rawValue + UInt64(count) { try make(NodeID(number)) }
        } catch {
            // Whoever makes a file makes its content file, and hears what is wrong.
            state.withLock { $0.missCount = 0 }
        }
        state.withLock { $0.isFilling = false }
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
