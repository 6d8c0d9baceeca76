import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSystem

// One job a node.

extension Hydrator {
    /// The job of a node, made when there is none; nil when the content is whole already.
    func job(for id: NodeID) throws(Failure) -> HydrationJob? {
        while let job = state.withLock({ $0.jobs[id] }) {
            if try job.isCurrent(in: index) { return job }
            // Whoever has taken its content away a moment ago has not come to ending it yet.
            startAgain(job)
        }
        var made: HydrationJob?
        do throws(Failure) {
            let job = try register(&made, for: id)
            if made != nil { index.touch([id]) }
            // An empty file has nothing to fetch and is whole at once.
            if let made, made === job, made.beginCompletion() { complete(made) }
            return job
        } catch {
            if let made { remove(made) }
            throw error
        }
    }

    /// Under the index's lock, with the look at the node: a job that is entered later could be one for content that another job
    /// has made whole, and that somebody has written since.
    private func register(_ made: inout HydrationJob?, for id: NodeID) throws(Failure) -> HydrationJob? {
        try index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id) else { throw Failure(.stale, "node \(id) is gone") }
            guard node.content != .whole else { return nil }
            guard let version = node.version else {
                throw Failure(.corrupted, "node \(id) has neither content nor a version: run 'promisefs verify'")
            }
            let isNew = node.content == .absent
            let file = isNew ? nil : SharedDescriptor(try content.open(id, node.generation))
            let plan = HydrationPlan(
                size: node.size, present: isNew ? ByteRangeSet() : try transaction.ranges(of: id), sizes: sizes)
            let job = HydrationJob(
                node: id, generation: node.generation, version: version, modificationTime: node.modificationTime, file: file,
                plan: plan, restarts: state.withLock { $0.restarts[id] ?? 0 })
            return state.withLock { state in
                if let other = state.jobs[id] { return other }
                state.jobs[id] = job
                made = job
                return job
            }
        }
    }
}

extension HydrationJob {
    /// The node has no other content now.
    fileprivate func isCurrent(in index: Index) throws(Failure) -> Bool {
        let found = try index.read { transaction throws(Failure) in try transaction.node(node) }
        return found.map { $0.generation == generation } ?? true
    }
}
