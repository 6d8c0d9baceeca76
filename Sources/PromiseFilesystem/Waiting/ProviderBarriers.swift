import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// fsyncs that mean the provider: each waits, parked, until the provider has what it covers; on the disk of this machine it
/// is before. Thread-safe; looks on a thread of its own while somebody waits.
final class ProviderBarriers: Sendable {
    /// What one fsync covers.
    struct Cover {
        /// Work that the provider had not been told when it began.
        var pending: [Pending]
        /// Files whose content is sent although they are open.
        var nodes: Set<NodeID>
        /// Of a file: as many edits as it had then; nil: names only.
        var edits: UInt64?
    }

    typealias Reply = @Sendable (Result<Void, Failure>) -> Void

    private struct Waiting {
        var cover: Cover
        var progress: Double?
        var reply: Reply
    }

    private enum Outcome {
        case stored, waits(progress: Double?), failed(Failure)
    }

    /// Looks cost a few lookups in the index for each that waits.
    private static let lookInterval = Duration.milliseconds(5)

    let reach = FsyncReach()
    private let waiting = RankedMutex(.leaf, [ParkedRequest: Waiting]())
    private let index: Index
    private let engine: SyncEngine
    private let parking: Parking
    private let clock: any TimeSource
    private let pool: BlockingPool
    private let lookout: Lookout

    init(
        _ index: Index, _ engine: SyncEngine, _ parking: Parking, _ clock: any TimeSource,
        _ pool: BlockingPool, _ lookout: Lookout
    ) {
        (self.index, self.engine, self.parking, self.clock) = (index, engine, parking, clock)
        (self.pool, self.lookout) = (pool, lookout)
        lookout.begin { [weak self] in self?.look() ?? nil }
    }

    func reach(of id: NodeID) -> FsyncReach.Reach {
        if reach.isLocalEverywhere { return .local }
        return (try? index.read { transaction throws(Failure) in try reach.reach(of: id, transaction) }) ?? .local
    }

    func reachesProvider(_ id: NodeID) -> Bool { reach(of: id) == .provider }

    /// Carries out `body`, which is about this machine, and answers when the provider has the content.
    func synchronize(
        file id: NodeID, _ reply: @escaping Reply, _ body: @escaping @Sendable () throws(Failure) -> Void
    ) -> ParkedRequest {
        synchronize(reply, body) { [self] transaction throws(Failure) in try cover(ofFile: id, transaction) }
    }

    /// The same of the names in a folder.
    func synchronize(
        folder id: NodeID, _ reply: @escaping Reply, _ body: @escaping @Sendable () throws(Failure) -> Void
    ) -> ParkedRequest {
        synchronize(reply, body) { [self] transaction throws(Failure) in try cover(ofFolder: id, transaction) }
    }

    private func synchronize(
        _ reply: @escaping Reply, _ body: @escaping @Sendable () throws(Failure) -> Void,
        cover: @escaping @Sendable (borrowing Transaction) throws(Failure) -> Cover
    ) -> ParkedRequest {
        let parked = parking.enter { reply(.failure($0)) }
        pool.submit { [self] in
            do throws(Failure) {
                try body()
                wait(for: try index.read { transaction throws(Failure) in try cover(transaction) }, parked, reply)
            } catch {
                answer(parked, .failure(error), reply)
            }
        }
        return parked
    }

    /// Under each name.
    private func cover(ofFile id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Cover {
        guard let node = try transaction.node(id) else { throw Failure(.stale, "the file is gone") }
        var cover = Cover(pending: [], nodes: [id], edits: node.edits)
        for entry in try transaction.entries(of: id) where !entry.isExcluded {
            if let row = try transaction.pending(.entry(entry.id)) { cover.pending.append(row) }
        }
        return cover
    }

    /// The names that were made, given and taken. Looks at all that is pending.
    private func cover(ofFolder id: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Cover {
        let folder = try engine.identifier(of: id, transaction)
        var cover = Cover(pending: [], nodes: [], edits: nil)
        for row in try transaction.allPending(limit: .max) {
            let identifier: ItemIdentifier?
            switch row.subject {
            case .entry(let entryID):
                guard let entry = try transaction.entry(entryID), !entry.isExcluded else { continue }
                identifier = entry.identifier
                if entry.parent == id || entry.node == id {
                    cover.pending.append(row)
                    cover.nodes.insert(entry.node)
                    continue
                }
            case .deletion(let deleted): identifier = deleted
            }
            // What was in it for the provider, and is elsewhere or nowhere now.
            guard let folder, let identifier, try transaction.synced(identifier)?.item.parent == folder else { continue }
            cover.pending.append(row)
        }
        return cover
    }

    /// Answers a parked request when the provider has it, or says why that cannot be; at once when there is nothing to wait for.
    private func wait(for cover: Cover, _ request: ParkedRequest, _ reply: @escaping Reply) {
        if cover.pending.isEmpty { return answer(request, .success(()), reply) }
        waiting.withLock { $0[request] = Waiting(cover: cover, progress: nil, reply: reply) }
        parking.onAbandon(request) { [weak self] in self?.forget(request) }
        engine.hurry(cover.pending.map(\.subject), nodes())
        lookout.wake(at: clock.uptime() + ProviderBarriers.lookInterval)
    }

    func end() { lookout.end() }

    private func nodes() -> Set<NodeID> {
        waiting.withLock { $0.values.reduce(into: []) { $0.formUnion($1.cover.nodes) } }
    }

    private func forget(_ request: ParkedRequest) {
        guard waiting.withLock({ $0.removeValue(forKey: request) }) != nil else { return }
        engine.hurry([], nodes())
    }

    private func answer(_ request: ParkedRequest, _ result: Result<Void, Failure>, _ reply: Reply) {
        if parking.claim(request) { reply(result) }
    }

    /// Returns when it looks again; nil: when somebody waits again.
    private func look() -> Duration? {
        for (request, each) in waiting.withLock({ $0 }) {
            switch outcome(of: each.cover) {
            case .stored: finish(request, .success(()), each.reply)
            case .failed(let failure): finish(request, .failure(failure), each.reply)
            case .waits(let progress):
                // What comes on may take longer than a request without an answer.
                guard progress != each.progress else { continue }
                waiting.withLock { $0[request]?.progress = progress }
                parking.extend(request)
            }
        }
        return waiting.withLock { $0.isEmpty } ? nil : clock.uptime() + ProviderBarriers.lookInterval
    }

    private func finish(_ request: ParkedRequest, _ result: Result<Void, Failure>, _ reply: Reply) {
        forget(request)
        answer(request, result, reply)
    }

    private func outcome(of cover: Cover) -> Outcome {
        if let failure = engine.connectionFailure { return .failed(failure) }
        do throws(Failure) {
            let isStored = try index.read { transaction throws(Failure) in
                for before in cover.pending where try !isDone(before, cover.edits, transaction) { return false }
                return true
            }
            if isStored { return .stored }
            return .waits(progress: cover.nodes.lazy.compactMap { [engine] in engine.uploadProgress.of($0) }.first)
        } catch {
            return .failed(error)
        }
    }

    /// Throws what stands in the way for good.
    private func isDone(
        _ before: Pending, _ edits: UInt64?, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard let row = try transaction.pending(before.subject) else { return true }
        // What waited long begins to wait again when one state of it was sent, which may be an earlier one.
        let later = row.since.nanoseconds(since: before.since)
        if later > 0, .nanoseconds(later) < engine.unrestMax { return true }
        if case .entry(let id) = row.subject {
            guard let entry = try transaction.entry(id), !entry.isExcluded else { return true }
            if let identifier = entry.identifier, let synced = try transaction.synced(identifier) {
                // Written to since then, or renamed: that is for the next fsync.
                if let edits, synced.edits >= edits { return true }
                let parent = try engine.identifier(of: entry.parent, transaction)
                if edits == nil, synced.item.name == entry.name, synced.item.parent == parent { return true }
            }
        }
        if row.attempts > before.attempts { try refuse(row) }
        // What is to be made in a folder waits for that.
        guard case .entry(let id) = row.subject, var folder = try transaction.entry(id)?.parent else { return false }
        while folder != .root, let above = try transaction.entries(of: folder).first {
            if let row = try transaction.pending(.entry(above.id)) { try refuse(row) }
            folder = above.parent
        }
        return false
    }

    private func refuse(_ row: Pending) throws(Failure) {
        guard let code = row.error, code.isLasting else { return }
        throw Failure(code, row.message ?? "the provider refuses it")
    }
}

extension Failure.Code {
    /// Trying again changes nothing until somebody does something about it.
    fileprivate var isLasting: Bool {
        switch self {
        case .offline, .timedOut, .stale, .conflict, .busy, .interrupted: false
        default: true
        }
    }
}
