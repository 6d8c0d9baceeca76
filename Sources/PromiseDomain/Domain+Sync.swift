import Glibc
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseMount
import PromiseProvider
import PromiseSync
import PromiseSystem

// What is pending, waiting for it, and the state of the whole.

extension Domain {
    private static let pendingShownMax = 10_000

    /// Work the provider has not seen, and downloads running; of everything below a node when given.
    package func pending(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        let prefix = try scope.flatMap { scope throws(Failure) in
            try index.read { transaction throws(Failure) in try transaction.path(of: scope) }
        }
        let uploads: [PendingWork] = try index.read { transaction throws(Failure) in
            var result: [PendingWork] = []
            for row in try transaction.allPending(limit: Domain.pendingShownMax) {
                if let work = try describe(row, transaction) { result.append(work) }
            }
            return result
        }
        return try (uploads + downloads() + PendingWork.unlisted(by: engine, index)).filter { $0.path.starts(with: prefix ?? []) }
    }

    /// What is never sent, of everything below a node when given.
    package func excluded(below scope: NodeID?) throws(Failure) -> [PendingWork] {
        try index.read { transaction throws(Failure) in
            try PendingWork.excluded(below: scope, limit: Domain.pendingShownMax, transaction)
        }
    }

    private func describe(_ row: Pending, _ transaction: borrowing Transaction) throws(Failure) -> PendingWork? {
        var work = PendingWork(
            kind: .upload, node: nil, path: [], isRunning: engine.isRunning(row.subject), size: 0, progress: nil,
            since: row.since,
            attempts: row.attempts, error: row.message ?? engine.connectionFailure?.message)
        work.code = row.error
        switch row.subject {
        case .deletion(let identifier):
            work.kind = .delete
            guard let name = try transaction.knownName(of: identifier) else { return nil }
            work.path = try transaction.remotePath(of: identifier) ?? [name]
        case .entry(let id):
            guard let entry = try transaction.entry(id), let node = try transaction.node(entry.node) else { return nil }
            work.node = node.id
            work.size = node.size
            if work.isRunning { work.progress = engine.uploadProgress.of(node.id) }
            guard let folder = try transaction.path(of: entry.parent) else { return nil }
            work.path = folder + [entry.name]
            work.kind = try kind(of: entry, node, transaction)
        }
        return work
    }

    private func kind(of entry: Entry, _ node: Node, _ transaction: borrowing Transaction) throws(Failure) -> PendingWork.Kind {
        guard let identifier = entry.identifier, let synced = try transaction.synced(identifier) else { return .create }
        if node.kind == .file && synced.edits != node.edits { return .upload }
        if synced.item.name != entry.name { return .move }
        if let parent = try engine.identifier(of: entry.parent, transaction), parent != synced.item.parent { return .move }
        return .metadata
    }

    /// What is on its way, and then what will be fetched although no program waits for it.
    private func downloads() throws(Failure) -> [PendingWork] {
        let running = engine.hydrator.runningNodes
        var result: [PendingWork] = running.compactMap { id in
            guard let progress = engine.hydrator.progress(of: id), let path = path(of: id) else { return nil }
            return PendingWork(
                kind: .download, node: id, path: path, isRunning: true, size: progress.size,
                progress: progress.size == 0 ? nil : Double(progress.present) / Double(progress.size), since: clock.now(),
                attempts: 0, error: nil)
        }
        var known = Set(running)
        for id in try engine.queuedFetches(limit: Domain.pendingShownMax) where known.insert(id).inserted {
            let node = try index.read { transaction throws(Failure) in try transaction.node(id) }
            guard let node, node.content != .whole, let path = path(of: id) else { continue }
            result.append(
                PendingWork(
                    kind: .download, node: id, path: path, isRunning: false, size: node.size, progress: nil,
                    since: clock.now(), attempts: 0,
                    error: (engine.hydrator.problem(of: id) ?? engine.connectionFailure)?.message))
        }
        return result
    }

    /// Carries out one piece of pending work and returns it when the provider has answered; nil: there was
    /// nothing that could be done. Nothing more goes by itself until `synchronize`. Throws `.busy` while
    /// work from before is under way, and `.offline`.
    package func stepPending() async throws(Failure) -> PendingWork? {
        if let failure = engine.connectionFailure { throw failure }
        let result: Result<SteppedOperation?, Failure> = await withCheckedContinuation { continuation in
            engine.step { continuation.resume(returning: $0) }
        }
        return try result.get().map { PendingWork($0, at: clock.now()) }
    }

    // MARK: Barriers

    /// Looks at the provider now; with `wait`, returns when nothing is pending below `node`, or throws
    /// what stands in the way, with a sentence saying what is left.
    package func synchronize(below scope: NodeID?, wait: Bool, timeout: Duration?) async throws(Failure) {
        var below: (() throws(Failure) -> WorkBelow)?
        if let scope { below = { () throws(Failure) in WorkBelow(try self.pending(below: scope)) } }
        do throws(Failure) {
            try await Barrier(engine: engine, clock: clock, below: below).wait(untilDone: wait, timeout: timeout)
        } catch {
            throw error.code == .interrupted ? error : try leftOver(scope, because: error)
        }
    }

    private func leftOver(_ scope: NodeID?, because failure: Failure) throws(Failure) -> Failure {
        let left = try pending(below: scope).filter(\.isToBeSent).count
        let items = left == 1 ? "1 item waits" : "\(left) items wait"
        return Failure(failure.code, left == 0 ? failure.message : "\(items) to be uploaded: \(failure.message)")
    }

    // MARK: Status

    package func status() async -> DomainStatus {
        refreshQuota()
        let counts = try? index.read { transaction throws(Failure) in try transaction.counts() }
        let quota = filesystem.knownQuota
        let transport = session.transport
        var status = DomainStatus(
            name: configuration.name, provider: provider.name, capabilities: provider.capabilities.nameList,
            mountPoint: configuration.mountPoint, stateFolder: configuration.stateFolder, processID: getpid(),
            connection: .online, connectionMessage: nil, transport: transport?.name ?? "device",
            transportMessage: transport?.message, requests: session.requestCounts, hasPassthrough: filesystem.hasPassthrough,
            passthroughMessage: filesystem.passthroughProblem, isReadOnly: configuration.isReadOnly, nodes: counts?.nodes ?? 0,
            placeholders: counts?.placeholders ?? 0, pending: counts?.pending ?? 0, failing: counts?.failing ?? 0,
            uploading: engine.uploadingCount, downloading: engine.hydrator.runningCount,
            bytesFetched: engine.hydrator.bytesFetched,
            bytesUploaded: engine.bytesUploaded, cacheBytes: counts?.localBytes ?? 0, cacheLimit: configuration.cacheLimit,
            quotaTotal: quota?.total, quotaAvailable: quota?.available, openFiles: filesystem.openCount)
        status.kernelNodes = filesystem.kernelNodeCount
        status.countApart(in: index, engine)
        if let holder {
            status.isSupervised = holder.isAlive
            status.outlivesDaemon = holder.isAlive && session.outlivesDaemon
            status.holderID = holder.processID
            status.restarts = holder.restarts
            status.lastEnd = holder.lastEnd
        }
        status.limitations = provider.limitations
        status.configurationProblem = configuration.problem
        status.countRecords(keyValues, services)
        status.transfers = engine.hydrator.transfers.counts
        switch engine.connection {
        case .online: break
        case .connecting:
            status.connection = .offline
            status.connectionMessage = "the provider has not answered yet"
        case .offline(let message): (status.connection, status.connectionMessage) = (.offline, message)
        case .failing(let message): (status.connection, status.connectionMessage) = (.failing, message)
        }
        (status.connectionSince, status.nextTry) = engine.connectionTimes
        return status
    }
}

extension PendingWork {
    fileprivate init(_ stepped: SteppedOperation, at now: Timestamp) {
        self.init(
            kind: Kind(rawValue: stepped.kind.rawValue) ?? .local, node: stepped.node, path: stepped.path,
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
