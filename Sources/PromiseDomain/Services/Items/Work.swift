package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What is pending, and waiting for it.
package struct Work: Sendable {
    let items: Items
    let clock: any TimeSource

    private var index: Index { items.tree.index }
    private var engine: SyncEngine { items.tree.engine }

    private static let shownMax = 10_000
    /// For what the kernel has of files that are written to.
    private static let pagesPatience = Duration.seconds(10)

    /// Work the provider has not seen, and downloads running; of everything below a node when
    /// given.
    package func pending(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        let prefix = try scope.flatMap { scope throws(Failure) in
            try index.read { transaction throws(Failure) in try transaction.path(of: scope) }
        }
        let uploads: [PendingWork] = try index.read { transaction throws(Failure) in
            var result: [PendingWork] = []
            for row in try transaction.allPending(limit: Work.shownMax) {
                if let work = try describe(row, transaction) { result.append(work) }
            }
            return result
        }
        return try (uploads + downloads() + PendingWork.unlisted(by: engine, index)).filter {
            $0.path.starts(with: prefix ?? [])
        }
    }

    /// What is never sent, of everything below a node when given.
    package func excluded(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        try index.read { transaction throws(Failure) in
            try PendingWork.excluded(below: scope, limit: Work.shownMax, transaction)
        }
    }

    private func describe(_ row: Pending, _ transaction: borrowing Transaction) throws(Failure)
        -> PendingWork?
    {
        var work = PendingWork(
            kind: .upload, node: nil, path: [], isRunning: engine.isRunning(row.subject), size: 0,
            progress: nil,
            since: row.since,
            attempts: row.attempts, error: row.message ?? engine.connectionFailure?.message)
        work.code = row.error
        if work.isRunning { work.silentSince = engine.uploadProgress.silentSince(row.subject) }
        switch row.subject {
        case .deletion(let identifier):
            work.kind = .delete
            guard let name = try transaction.knownName(of: identifier) else { return nil }
            work.path = try transaction.remotePath(of: identifier) ?? [name]
        case .entry(let id):
            guard let entry = try transaction.entry(id), let node = try transaction.node(entry.node)
            else { return nil }
            work.node = node.id
            work.size = node.size
            if work.isRunning { work.progress = engine.uploadProgress.of(node.id) }
            guard let folder = try transaction.path(of: entry.parent) else { return nil }
            work.path = folder + [entry.name]
            work.kind = try kind(of: entry, node, transaction)
        }
        return work
    }

    private func kind(of entry: Entry, _ node: Node, _ transaction: borrowing Transaction)
        throws(Failure) -> PendingWork.Kind
    {
        guard let identifier = entry.identifier, let synced = try transaction.synced(identifier)
        else { return .create }
        if node.kind == .file && synced.edits != node.edits { return .upload }
        if synced.item.name != entry.name { return .move }
        if let parent = try engine.identifier(of: entry.parent, transaction),
            parent != synced.item.parent
        {
            return .move
        }
        return .metadata
    }

    /// What is on its way, and then what will be fetched although no program waits for it.
    private func downloads() throws(Failure) -> [PendingWork] {
        let running = engine.hydrator.runningNodes
        var result: [PendingWork] = running.compactMap { id in
            guard let progress = engine.hydrator.progress(of: id), let path = items.path(of: id)
            else { return nil }
            return PendingWork(
                kind: .download, node: id, path: path, isRunning: true, size: progress.size,
                progress: progress.size == 0
                    ? nil : Double(progress.present) / Double(progress.size), since: clock.now(),
                attempts: 0, error: nil)
        }
        var known = Set(running)
        for id in try engine.queuedFetches(limit: Work.shownMax) where known.insert(id).inserted {
            let node = try index.read { transaction throws(Failure) in try transaction.node(id) }
            guard let node, node.content != .whole, let path = items.path(of: id) else { continue }
            result.append(
                PendingWork(
                    kind: .download, node: id, path: path, isRunning: false, size: node.size,
                    progress: nil,
                    since: clock.now(), attempts: 0,
                    error: (engine.hydrator.problem(of: id) ?? engine.connectionFailure)?.message))
        }
        return result
    }

    /// Carries out one piece of pending work and returns it when the provider has answered; nil:
    /// there was nothing that could be done. Nothing more goes by itself until `synchronize`.
    /// Throws `.busy` while work from before is under way, and `.offline`.
    package func step() async throws(Failure) -> PendingWork? {
        if let failure = engine.connectionFailure { throw failure }
        let result: Result<SteppedOperation?, Failure> = await withCheckedContinuation {
            continuation in
            engine.step { continuation.resume(returning: $0) }
        }
        return try result.get().map { PendingWork($0, at: clock.now()) }
    }

    /// While paused the provider is told nothing and nothing is fetched by itself, also after the
    /// next mount. Returns when that is kept.
    package func setPaused(_ isPaused: Bool) async throws(Failure) {
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            engine.setPaused(isPaused) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Returns when what the domain may use is kept, also for the next mount.
    package func setLimits(_ change: LimitsChange) async throws(Failure) {
        let wantsRate = change.up.flatMap { $0 } != nil || change.down.flatMap { $0 } != nil
        if wantsRate, engine.lineLimit == nil {
            throw Failure(
                .notSupported,
                "this provider sends nothing by itself that could be slowed down: a rate is for webdav, s3 and rclone")
        }
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            engine.setLimits(change) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    // MARK: Barriers

    /// Looks at the provider now; with `wait`, returns when nothing is pending below `node`, or
    /// throws what stands in the way, with a sentence saying what is left.
    package func synchronize(below scope: NodeID?, wait: Bool, timeout: Duration?)
        async throws(Failure)
    {
        if wait, WrittenPages(of: items.tree.filesystem).take() {
            await items.tree.filesystem.waitUntilKernelIsTold(within: Work.pagesPatience)
        }
        var below: (() throws(Failure) -> WorkBelow)?
        if let scope { below = { () throws(Failure) in WorkBelow(try self.pending(below: scope)) } }
        do throws(Failure) {
            try await Barrier(engine: engine, clock: clock, below: below).wait(
                untilDone: wait, timeout: timeout)
        } catch {
            throw error.code == .interrupted ? error : try leftOver(scope, because: error)
        }
    }

    private func leftOver(_ scope: NodeID?, because failure: Failure) throws(Failure) -> Failure {
        let left = try pending(below: scope).filter(\.isToBeSent).count
        let items = left == 1 ? "1 item waits" : "\(left) items wait"
        return Failure(
            failure.code,
            left == 0 ? failure.message : "\(items) to be uploaded: \(failure.message)")
    }
}

extension PendingWork {
    fileprivate init(_ stepped: SteppedOperation, at now: Timestamp) {
        self.init(
            kind: Kind(rawValue: stepped.kind.rawValue) ?? .local, node: stepped.node,
            path: stepped.path,
            isRunning: false, size: stepped.byteCount, progress: nil, since: now, attempts: 1,
            error: stepped.problem?.message)
    }
}

extension Transaction {
    /// What the provider calls an item, by all that is known.
    fileprivate func knownName(of item: ItemIdentifier) throws(Failure) -> FileName? {
        if case .present(let present)? = try remote(item) { return present.name }
        return try synced(item)?.item.name
    }
}
