import Logging
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseProvider
package import PromiseSystem
import Synchronization

// What the index is told of content that is on its way, and what becomes of its file.
//
// While content is only fetched the index need not know of it: a content file that no row names is made anew by whoever
// fetches next, and removed at the next start. So a small file costs one transaction, when it is whole. What is large is
// noted with the first ranges that are stored, what is edited here before the edit.

extension Hydrator {
    /// Completions between two looks at the room on the disk, of small files.
    private static let completionsPerLook: UInt64 = 64

    // MARK: The content file

    /// The content file, made by whoever needs it first; nil when the job is closed and has none.
    private func contentFile(of job: HydrationJob) throws(Failure) -> SharedDescriptor? {
        try job.file { () throws(Failure) in
            SharedDescriptor(try content.create(job.node, job.generation, size: job.progress.size))
        }
    }

    /// As `contentFile`, for a fetch.
    func fileToFill(of job: HydrationJob) throws(ProviderError) -> SharedDescriptor {
        do throws(Failure) {
            if let file = try contentFile(of: job) { return file }
        } catch {
            throw ProviderError(error.code == .storeFull ? .localDiskFull : .permanent, error.message)
        }
        throw ProviderError(.cancelled, "the content is not wanted any more")
    }

    /// After the end of a job whose content nobody knows of: its file goes, unless it belongs to somebody by now.
    func forgetFile(of job: HydrationJob) {
        guard job.hasFile, !job.isNoted else { return }
        do throws(Failure) {
            // While nobody can make a job, and with it a file of this name.
            try index.read { transaction throws(Failure) in
                let node = try transaction.node(job.node)
                if let node, node.generation == job.generation, node.content != .absent { return }
                guard state.withLock({ $0.jobs[job.node] == nil }) else { return }
                try content.remove(job.node, job.generation)
            }
        } catch {
            // It is removed at the next start.
            logger.debug("fetched content was left", metadata: ["node": "\(job.node)", "reason": "\(error.message)"])
        }
    }

    // MARK: What the index is told

    /// Stores how far a file has come. What is small is fetched at once, and stored when it is whole.
    /// `isLast`: by whoever has closed the job.
    func store(_ job: HydrationJob, isLast: Bool = false) {
        guard job.isNoted || job.hasFile && job.progress.size > sizes.smallFileMax else { return }
        _ = try? update(job, isLast: isLast) { node, ranges, transaction throws(Failure) in
            try transaction.setRanges(of: job.node, to: ranges)
            node.localBytes = (try content.status(job.node, job.generation)?.blocks ?? 0) * 512
        }
    }

    func complete(_ job: HydrationJob) {
        var isAwaited = false
        // It was emptied here a moment ago, and whoever waits goes on with that.
        var isWholeAlready = false
        // An empty file has been fetched by nobody.
        let file: Result<SharedDescriptor?, Failure>
        do throws(Failure) { file = .success(try contentFile(of: job)) } catch {
            file = .failure(error)
        }
        guard job.close() else { return }
        let done: Result<Void, Failure>
        do throws(Failure) {
            guard let file = try file.get() else { throw job.staleness }
            // Nearly always right as it is; what is edited or given other times meanwhile is looked at again.
            let finished = job.isNoted ? nil : try finish(file, job.modificationTime)
            let digest = job.isNoted ? nil : digest(of: file, job)
            isAwaited = try index.write { transaction throws(Failure) in
                guard var node = try transaction.node(job.node) else { throw job.staleness }
                isWholeAlready = node.content == .whole
                if isWholeAlready { return false }
                guard mayStore(job, for: node) else { throw job.staleness }
                if let digest { try store(digest, of: job, node, transaction) }
                if let finished, node.content == .absent, node.modificationTime == job.modificationTime {
                    return try makeWhole(&node, finished, transaction)
                }
                return try makeWhole(&node, try finish(file, node.modificationTime), transaction)
            }
            if !isWholeAlready { job.noted() }
            done = .success(())
        } catch {
            done = .failure(error)
        }
        remove(job)
        job.end(done)
        guard case .success = done, !isWholeAlready else { return forgetFile(of: job) }
        note(nil, of: job.node)
        let count = completionCount.wrappingAdd(1, ordering: .relaxed).newValue
        let isLookDue = job.progress.size > sizes.smallFileMax || count % Hydrator.completionsPerLook == 0
        if isAwaited || isLookDue { onCompletion() }
    }

    /// Of more than this it would take as long as fetching it from a disk.
    private static let digestedByteCountMax: UInt64 = 1 << 20

    /// Of what was only fetched, so that another version of it can be known as the same content; nil for
    /// what is large or cannot be read.
    private func digest(of file: SharedDescriptor, _ job: HydrationJob) -> String? {
        let size = job.progress.size
        guard size <= Hydrator.digestedByteCountMax else { return nil }
        return try? ContentDigest.of(descriptor: file.number, size: size)
    }

    private func store(
        _ digest: String, of job: HydrationJob, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) {
        for entry in try transaction.entries(of: node.id) {
            guard let identifier = entry.identifier, let agreed = try transaction.synced(identifier),
                agreed.item.version == job.version, agreed.edits == node.edits,
                agreed.item.size == job.progress.size
            else { continue }
            try transaction.setFingerprint(
                Fingerprint(version: job.version, size: agreed.item.size, digest: digest),
                of: identifier)
        }
    }

    /// From here on the content file's time tells of writes, so it must not tell of the fetch.
    private func finish(_ file: SharedDescriptor, _ time: Timestamp) throws(Failure) -> FileStatus {
        do throws(SystemError) {
            try setTimes(file.number, access: nil, modification: time, label: "content.times")
            return try FileStatus.of(descriptor: file.number, label: "content.finish.status")
        } catch {
            throw Failure(error)
        }
    }

    /// True when work was in line for it: edited partial content waits for its missing bytes before it can be sent.
    private func makeWhole(
        _ node: inout Node, _ status: FileStatus, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        if node.content == .partial { try transaction.setRanges(of: node.id, to: ByteRangeSet()) }
        if node.content == .absent { node.lastUse = clock.now() }
        node.content = .whole
        node.durability = .unknown
        node.localBytes = status.blocks * 512
        let entries = try transaction.entries(of: node.id)
        if let entry = entries.first {
            try transaction.record(.content, node: node.id, parent: entry.parent, name: entry.name)
        }
        var isAwaited = false
        // Of an item that is as synced nothing is in line.
        for entry in entries where !node.isAsSynced {
            guard var row = try transaction.pending(.entry(entry.id)) else { continue }
            row.due = clock.now()
            try transaction.setPending(row)
            isAwaited = true
        }
        try transaction.update(node)
        return isAwaited
    }

    func fail(_ job: HydrationJob, _ problem: ProviderError) {
        // One of several fetches that failed.
        guard job.close() else { return }
        // When no write is being noted any more, with bytes perhaps that this fetch has refuted.
        store(job, isLast: true)
        note(problem, of: job.node)
        // While nobody can make another job, whose bytes would be dropped with these.
        if problem.code == .localDiskFull || problem.code == .corrupted {
            job.giveUp()
            dropFetched(job)
        }
        remove(job)
        logger.debug("hydration failed", metadata: ["node": "\(job.node)", "reason": "\(problem.message)"])
        job.end(.failure(problem.failure))
        forgetFile(of: job)
    }

    /// The disk is full because of what was fetched, or it is not what it should be: it is given back, unless something was
    /// written here in between.
    private func dropFetched(_ job: HydrationJob) {
        do throws(Failure) {
            let isDropped: Bool = try index.writeFreeing { transaction throws(Failure) in
                guard var node = try transaction.node(job.node), node.generation == job.generation, node.content == .partial,
                    !node.isOpenForWriting, let identifier = try transaction.entries(of: job.node).first?.identifier,
                    try transaction.synced(identifier)?.edits == node.edits
                else { return false }
                try transaction.setRanges(of: job.node, to: ByteRangeSet())
                node.localBytes = 0
                try transaction.update(node)
                return true
            }
            guard isDropped else { return }
            job.refuteUnproven()
            guard let file = try contentFile(of: job) else { return }
            // The index says already that nothing is here, so a hole that cannot be punched does no harm.
            _ = try? punchHole(file.number, ByteRange(0, max(job.progress.size, 1)), label: "content.drop")
        } catch {
            logger.warning(
                "fetched content could not be dropped", metadata: ["node": "\(job.node)", "reason": "\(error.message)"])
        }
    }

    func remove(_ job: HydrationJob) {
        let left = job.leftover
        state.withLock { state in
            guard state.jobs[job.node] === job else { return }
            state.jobs[job.node] = nil
            state.leftovers.keep(left, of: job.node)
        }
        index.touch([job.node])
        job.left()
    }

    /// The content was not replaced meanwhile, and no other job knows better what is here.
    func mayStore(_ job: HydrationJob, for node: Node) -> Bool {
        guard node.generation == job.generation, node.content != .whole else { return false }
        return state.withLock { $0.jobs[job.node] === job }
    }

    /// Changes the row of a node whose content is partial, or becomes partial by this, unless it
    /// was replaced meanwhile, or others tell the index what is here.
    private func update(
        _ job: HydrationJob, isLast: Bool = false,
        _ body: (inout Node, ByteRangeSet, borrowing Transaction) throws(Failure) -> Void
    ) throws(Failure) {
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(job.node), mayStore(job, for: node),
                let ranges = job.rangesToStore(
                    isDurable: node.durability.hasBase, isOurs: try transaction.hasOurs(node), isLast: isLast)
            else {
                throw job.staleness
            }
            if node.content == .absent {
                node.content = .partial
                node.lastUse = clock.now()
            }
            try body(&node, ranges, transaction)
            try transaction.update(node)
        }
        job.noted()
    }

    // MARK: Local edits of partial content

    /// The job of a node that is about to be edited here, of which the index knows; nil when the content is whole.
    private func jobForEdits(of id: NodeID) throws(Failure) -> HydrationJob? {
        // A job may end between being found and being noted; then the index knows more than it did.
        for _ in 0..<8 {
            guard let job = try job(for: id) else { return nil }
            job.waitWhileClosing()
            if job.isClosed { continue }
            if job.isNoted { return job }
            guard try contentFile(of: job) != nil else { continue }
            do throws(Failure) {
                try update(job) { _, ranges, transaction throws(Failure) in
                    try transaction.setRanges(of: id, to: ranges)
                }
                return job
            } catch {
                guard error.code == .stale else { throw error }
            }
        }
        throw Failure(.busy, "the content of node \(id) keeps changing")
    }

    /// A program is about to write `range` of a node whose content is not whole; nil when it is.
    package func claim(_ range: ByteRange, of node: NodeID) throws(Failure) -> ContentClaim? {
        try claim(node) { $0.claim(range) }
    }

    /// A node whose content is not whole is about to get another size; nil when it is whole.
    package func claimSize(_ size: UInt64, of node: NodeID) throws(Failure) -> ContentClaim? {
        try claim(node) { $0.claimSize(size) }
    }

    private func claim(
        _ node: NodeID, _ claim: (HydrationJob) -> ContentClaim?
    ) throws(Failure) -> ContentClaim? {
        for _ in 0..<8 {
            guard let job = try jobForEdits(of: node) else { return nil }
            if let claim = claim(job) { return claim }
        }
        throw Failure(.busy, "the content of node \(node) keeps changing")
    }

    /// The descriptor that partial content is read from and written to; nil when it is whole.
    package func file(of node: NodeID) throws(Failure) -> SharedDescriptor? {
        guard let job = try jobForEdits(of: node) else { return nil }
        guard let file = try contentFile(of: job) else { throw job.staleness }
        return file
    }

    // MARK: The disk

    /// What was fetched of a node and may not be on the disk: to be asked before its content file is
    /// synchronized, and given to `synchronized` afterwards.
    package func unsynchronized(of node: NodeID) -> ByteRangeSet {
        state.withLock { $0.jobs[node] }?.unsynchronized ?? ByteRangeSet()
    }

    package func synchronized(_ ranges: ByteRangeSet, of node: NodeID) {
        state.withLock { $0.jobs[node] }?.synchronized(ranges)
    }

    // MARK: Ends

    /// Content is on its way, perhaps into a file that the index does not know of.
    package func isBusy(_ node: NodeID) -> Bool { state.withLock { $0.jobs[node] != nil } }

    /// The content is gone, or is there without what the provider had: whoever waits is told.
    package func discard(_ node: NodeID, because failure: Failure) {
        end(node, nil, .failure(failure))
    }

    /// The file was emptied: it is whole, and whoever waits goes on with what is there now.
    /// `generation`: of the content that it had.
    package func answerWaiters(of node: NodeID, _ generation: Generation) {
        end(node, generation, .success(()))
    }

    private func end(
        _ node: NodeID, _ generation: Generation?, _ result: Result<Void, Failure>
    ) {
        guard let job = state.withLock({ $0.jobs[node] }) else { return }
        if let generation, job.generation != generation { return }
        // Whoever ends it already does not find what it was about.
        guard job.close() else { return job.waitWhileClosing() }
        remove(job)
        job.end(result)
        forgetFile(of: job)
    }

    /// Forgets a job nobody needs, after the last close of a partial file.
    package func release(_ node: NodeID) {
        guard let job = state.withLock({ $0.jobs[node] }) else { return }
        retire(job)
    }

    /// What arrived is stored first, so that the next job starts from it.
    func retire(_ job: HydrationJob) {
        store(job)
        guard job.endIfUnwanted() else { return }
        remove(job)
        forgetFile(of: job)
    }

    /// Everybody who waits gets the failure, e.g. because the provider cannot be reached.
    package func failAll(_ failure: Failure) {
        for job in state.withLock({ Array($0.jobs.values) }) {
            guard job.close() else { continue }
            store(job, isLast: true)
            remove(job)
            job.end(.failure(failure))
            forgetFile(of: job)
        }
    }
}
