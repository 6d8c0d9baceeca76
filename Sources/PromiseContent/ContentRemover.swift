package import PromiseCore
package import PromiseIndex
package import PromiseSystem

/// Removes content files that the index has forgotten, when that is on the disk: after a power cut the index may be as it
/// was before, and must not name a file that is gone.
///
/// Many files go after one sync of the index, on the thread of a `Lookout`. What is left when the process ends is rubbish,
/// which the next start removes. Thread-safe.
package final class ContentRemover: Sendable {
    private struct File: Sendable {
        var node: NodeID
        var generation: Generation
    }

    private struct State {
        var waiting: [File] = []
        var isWorking = false
        /// Not to be looked at what is waiting before then.
        var rests = Duration.zero
        var isStopped = false
        /// Syncs that failed.
        var failureCount = 0
    }

    /// So that removing a tree syncs a few times a second, and not for each file.
    private static let rest = Duration.milliseconds(100)
    /// After a failing sync.
    private static let pause = Duration.seconds(1)

    private let index: Index
    private let content: ContentStore
    private let clock: any TimeSource
    private let onProblem: @Sendable (Failure) -> Void
    private let state = Monitor(State())
    private let lookout: Lookout

    /// `onProblem` is told of what failed; a file that could not be removed stays until the next start.
    package init(
        index: Index, content: ContentStore, clock: any TimeSource, lookout: Lookout,
        onProblem: @escaping @Sendable (Failure) -> Void
    ) {
        self.index = index
        self.content = content
        self.clock = clock
        self.lookout = lookout
        self.onProblem = onProblem
        lookout.begin { [self] in work() }
    }

    /// To be called after the transaction that forgot the file. Does not wait.
    package func remove(_ node: NodeID, _ generation: Generation) {
        // Whoever was first has woken it: each removal of many would wake the thread from its rest.
        let wakes: Duration? = state.withLock { state in
            state.waiting.append(File(node: node, generation: generation))
            return state.waiting.count == 1 && !state.isWorking ? state.rests : nil
        }
        if let wakes { lookout.wake(at: max(wakes, clock.uptime())) }
    }

    /// Waits until what was given before has been removed, or the index could not be synced.
    package func flush() {
        let failureCount = state.withLock { $0.failureCount }
        lookout.hurry()
        _ = state.wait { state in
            state.waiting.isEmpty && !state.isWorking || state.isStopped || state.failureCount > failureCount ? true : nil
        }
    }

    /// Removes what is waiting, if it can; before the index is closed. More than once is fine.
    package func stop() {
        lookout.end()
        if state.withLock({ !$0.isStopped }) { _ = work() }
        state.update { $0.isStopped = true }
    }

    /// Returns when it is to work again.
    private func work() -> Duration? {
        let batch = state.withLock { state in
            state.isWorking = !state.waiting.isEmpty
            defer { state.waiting = [] }
            return state.waiting
        }
        guard !batch.isEmpty else { return nil }
        var hasFailed = false
        do throws(Failure) {
            try index.synchronize()
            for file in batch {
                do throws(Failure) { try content.remove(file.node, file.generation) } catch { onProblem(error) }
            }
        } catch {
            onProblem(error)
            hasFailed = true
        }
        return state.update { state in
            state.isWorking = false
            state.rests = clock.uptime() + (hasFailed ? Self.pause : Self.rest)
            if hasFailed {
                state.failureCount += 1
                state.waiting = batch + state.waiting
            }
            return state.waiting.isEmpty ? nil : state.rests
        }
    }
}
