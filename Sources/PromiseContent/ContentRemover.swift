package import PromiseCore
package import PromiseIndex
import PromiseSystem

/// Removes content files that the index has forgotten, when that is on the disk: after a power cut the index may be as it
/// was before, and must not name a file that is gone.
///
/// Works on a thread of its own, many files after one sync of the index. What is left when the process ends is rubbish,
/// which the next start removes. Thread-safe.
package final class ContentRemover: Sendable {
    private struct File: Sendable {
        var node: NodeID
        var generation: Generation
    }

    private struct State {
        var waiting: [File] = []
        var isWorking = false
        /// The thread looks by itself what is waiting, soon.
        var looksSoon = false
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
    private let onProblem: @Sendable (Failure) -> Void
    private let state = Monitor(State())
    private let thread: Monitor<OwnedThread?>

    /// `onProblem` is told of what failed; a file that could not be removed stays until the next start.
    package init(index: Index, content: ContentStore, onProblem: @escaping @Sendable (Failure) -> Void) {
        self.index = index
        self.content = content
        self.onProblem = onProblem
        thread = Monitor(nil)
        let started = OwnedThread(name: "content-removal") { [state, index, content, onProblem] in
            ContentRemover.work(state, index, content, onProblem)
        }
        thread.withLock { $0 = started }
    }

    /// To be called after the transaction that forgot the file. Does not wait.
    package func remove(_ node: NodeID, _ generation: Generation) {
        let looksSoon = state.withLock { state in
            state.waiting.append(File(node: node, generation: generation))
            return state.looksSoon
        }
        // Else each removal of many would wake the thread from its rest.
        if !looksSoon { state.updateForOne { _ in } }
    }

    /// Waits until what was given before has been removed, or the index could not be synced.
    package func flush() {
        let failureCount = state.withLock { $0.failureCount }
        _ = state.wait { state in
            state.waiting.isEmpty && !state.isWorking || state.isStopped || state.failureCount > failureCount ? true : nil
        }
    }

    /// Removes what is waiting and ends the thread; before the index is closed. More than once is fine.
    package func stop() {
        state.update { $0.isStopped = true }
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
    }

    private static func work(
        _ state: Monitor<State>, _ index: Index, _ content: ContentStore, _ onProblem: @Sendable (Failure) -> Void
    ) {
        while true {
            let batch: [File]? = state.wait { state in
                state.looksSoon = !state.waiting.isEmpty
                if state.waiting.isEmpty { return state.isStopped ? [] : nil }
                state.isWorking = true
                defer { state.waiting = [] }
                return state.waiting
            }
            guard let batch, !batch.isEmpty else { return }
            var delay = rest
            do throws(Failure) {
                try index.synchronize()
                for file in batch {
                    do throws(Failure) { try content.remove(file.node, file.generation) } catch { onProblem(error) }
                }
                state.update { $0.isWorking = false }
            } catch {
                onProblem(error)
                delay = pause
                state.update { state in
                    state.isWorking = false
                    state.failureCount += 1
                    if !state.isStopped { state.waiting = batch + state.waiting }
                }
            }
            _ = state.wait(timeout: delay) { $0.isStopped ? true : nil }
        }
    }
}
