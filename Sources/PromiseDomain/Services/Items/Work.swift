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

    /// More are counted, and not listed.
    private static let shownMax = 10_000
    /// For what the kernel has of files that are written to.
    private static let pagesPatience = Duration.seconds(10)

    /// Work the provider has not seen, and downloads running; of everything below a node when
    /// given. Throws `.gone` when that has been removed.
    package func pending(below scope: NodeID?) throws(Failure) -> PendingList {
        var list: PendingList
        if let scope {
            list = PendingList()
            try forEachChange(below: path(of: scope)) { work in
                if list.items.count < Work.shownMax {
                    list.items.append(work)
                } else {
                    list.moreCount += 1
                    list.moreByteCount &+= work.size
                }
            }
            list.items.sort { $0.since < $1.since }
        } else {
            list = try index.read { transaction throws(Failure) in try oldest(transaction) }
        }
        list.items += try others(below: scope)
        return list
    }

    /// What is on its way here, and folders that the provider did not show.
    private func others(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        let found = try downloads() + PendingWork.unlisted(by: engine, index)
        guard let scope else { return found }
        let prefix = try path(of: scope)
        return found.filter { $0.path.starts(with: prefix) }
    }

    private func path(of scope: NodeID) throws(Failure) -> [FileName] {
        let path = try index.read { transaction throws(Failure) in try transaction.path(of: scope) }
        guard let path else { throw Failure(.gone, "the item was removed meanwhile") }
        return path
    }

    /// Of a whole domain.
    private func oldest(_ transaction: borrowing Transaction) throws(Failure) -> PendingList {
        var list = PendingList()
        var folders = FolderPaths()
        let rows = try transaction.allPending(limit: Work.shownMax)
        for row in rows {
            guard let work = try describe(row, below: [], &folders, transaction) else { continue }
            list.items.append(work)
        }
        guard rows.count == Work.shownMax else { return list }
        let totals = try PendingPages.totals(transaction)
        let listed = list.items.reduce(UInt64(0)) { $0 &+ $1.size }
        list.moreCount = max(totals.count - rows.count, 0)
        list.moreByteCount = totals.byteCount > listed ? totals.byteCount - listed : 0
        return list
    }

    /// In no order, and page by page, so that nobody waits for all of many.
    private func forEachChange(
        below prefix: [FileName], _ body: (PendingWork) -> Void
    ) throws(Failure) {
        var last = Int64.min
        var isOver = false
        while !isOver {
            try index.read { transaction throws(Failure) in
                var folders = FolderPaths()
                let page = try PendingPages.page(after: last, limit: Work.shownMax, transaction)
                for row in page {
                    last = row.row
                    let work = try describe(row.pending, below: prefix, &folders, transaction)
                    if let work { body(work) }
                }
                isOver = page.count < Work.shownMax
            }
        }
    }

    /// What is never sent, of everything below a node when given.
    package func excluded(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        try index.read { transaction throws(Failure) in
            try PendingWork.excluded(below: scope, limit: Work.shownMax, transaction)
        }
    }

    /// Nil for what is not below `prefix`.
    private func describe(
        _ row: Pending, below prefix: [FileName], _ folders: inout FolderPaths,
        _ transaction: borrowing Transaction
    ) throws(Failure) -> PendingWork? {
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
            guard work.path.starts(with: prefix) else { return nil }
        case .entry(let id):
            guard let entry = try transaction.entry(id),
                let folder = try folders.path(of: entry.parent, transaction)
            else { return nil }
            work.path = folder + [entry.name]
            guard work.path.starts(with: prefix), let node = try transaction.node(entry.node)
            else { return nil }
            work.node = node.id
            work.size = node.size
            if work.isRunning { work.progress = engine.uploadProgress.of(node.id) }
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
        if let scope { below = { () throws(Failure) in try self.work(below: scope) } }
        do throws(Failure) {
            try await Barrier(engine: engine, clock: clock, below: below).wait(
                untilDone: wait, timeout: timeout)
        } catch {
            throw error.code == .interrupted ? error : try leftOver(scope, because: error)
        }
    }

    private func work(below scope: NodeID) throws(Failure) -> WorkBelow {
        var result = WorkBelow(try others(below: scope))
        try forEachChange(below: path(of: scope)) { result.add($0) }
        return result
    }

    private func leftOver(_ scope: NodeID?, because failure: Failure) throws(Failure) -> Failure {
        let left = try pending(below: scope).toBeSentCount
        let items = left == 1 ? "1 item waits" : "\(left) items wait"
        return Failure(
            failure.code,
            left == 0 ? failure.message : "\(items) to be uploaded: \(failure.message)")
    }
}

/// Paths of folders in which much is pending.
private struct FolderPaths {
    private var known: [NodeID: [FileName]?] = [:]

    mutating func path(
        of folder: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> [FileName]? {
        if let path = known[folder] { return path }
        let path = try transaction.path(of: folder)
        known[folder] = .some(path)
        return path
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
