import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

// One job a node.

extension Hydrator {
    /// The job of a node, made when there is none; nil when the content is whole already.
    func job(for id: NodeID) throws(Failure) -> HydrationJob? {
        while true {
            while let job = state.withLock({ $0.jobs[id] }) {
                if try job.isCurrent(in: index) { return job }
                // Whoever has taken its content away a moment ago has not come to ending it yet.
                startAgain(job)
            }
            switch try register(id) {
            case .made(let job):
                index.touch([id])
                // An empty file has nothing to fetch and is whole at once.
                if job.beginCompletion() { complete(job) }
                return job
            case .found(let job): return job
            // It came since the look above, and its content has gone again.
            case .outdated(let job): startAgain(job)
            case nil: return nil
            }
        }
    }

    /// Under the index's lock, with the look at the node: a job that is entered later could be one for content that another job
    /// has made whole, and that somebody has written since. Nil when the content is whole.
    private func register(_ id: NodeID) throws(Failure) -> EnteredJob? {
        try index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id) else { throw Failure(.stale, "node \(id) is gone") }
            guard node.content != .whole else { return nil }
            guard let version = node.version else {
                throw Failure(.corrupted, "node \(id) has neither content nor a version: run 'promisefs verify'")
            }
            let isNew = node.content == .absent
            let file = isNew ? nil : SharedDescriptor(try content.open(id, node.generation))
            // A file that is made now has nothing of what was left in the one before.
            let plan = try isNew
                ? HydrationPlan(size: node.size, present: ByteRangeSet(), sizes: sizes)
                : HydrationPlan(
                    of: node, present: try transaction.ranges(of: id),
                    left: state.withLock { $0.leftovers.of(node) }, sizes: sizes, transaction)
            let job = HydrationJob(
                node: id, generation: node.generation, version: version, modificationTime: node.modificationTime, file: file,
                plan: plan, restarts: state.withLock { $0.restarts[id] ?? 0 })
            return state.withLock { state in
                let entered = state.jobs.enter(job)
                // The job knows it, and whoever looks while it goes on is not to go on with it later.
                if case .made = entered { state.leftovers.forget(id) }
                return entered
            }
        }
    }
}

/// What became of a job that was made for a node.
package enum EnteredJob {
    case made(HydrationJob)
    /// Another one has it for the same content.
    case found(HydrationJob)
    /// Another one has it, for content that is gone.
    case outdated(HydrationJob)
}

extension [NodeID: HydrationJob] {
    /// One job a node, so that no two write to one file. `job` is of the content that the node has
    /// at this moment, so one of another generation is of content from before: who waits for that
    /// one is not waiting for what is there now.
    package mutating func enter(_ job: HydrationJob) -> EnteredJob {
        guard let other = self[job.node] else {
            self[job.node] = job
            return .made(job)
        }
        return other.generation == job.generation ? .found(other) : .outdated(other)
    }
}

extension HydrationJob {
    /// The node has no other content now.
    fileprivate func isCurrent(in index: Index) throws(Failure) -> Bool {
        let found = try index.read { transaction throws(Failure) in try transaction.node(node) }
        return found.map { $0.generation == generation } ?? true
    }
}
