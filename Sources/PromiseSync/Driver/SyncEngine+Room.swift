import Logging
import PromiseContent
package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

// Giving back disk that content takes, of content the provider has.

extension SyncEngine {
    /// Content goes when the disk has less than this share left, limit or none.
    static let freeShareMin = 0.03
    /// And so much for the index, where a file is streamed.
    private static let freeMin: UInt64 = 8 << 20
    /// Content that is less than this part of what is missing on the disk stays.
    private static let helpfulShare: UInt64 = 16
    /// At least this part of the limit is for content that comes and goes.
    private static let roomShareMin: UInt64 = 4
    private static let keptAgeMax = Duration.seconds(10)
    private static let usesPerTransaction = 128
    private static let nodesPerCheck = 512
    /// How long one check looks for what may go, with a limit that cannot be kept, e.g.
    private static let checkTimeMax = Duration.seconds(2)

    package enum EvictionOutcome: Sendable {
        case evicted(UInt64)
        /// Nothing was local.
        case nothing
        case kept(KeptReason)
    }

    /// Drops the local copy of one file if the provider can give it again. `evenUsed`: although a
    /// program that coordinates uses it, which has agreed or is not to be asked. Called from any
    /// thread but those serving the mount.
    package func evict(_ id: NodeID, evenUsed: Bool = false) throws(Failure) -> EvictionOutcome {
        var notices = Notices()
        let outcome: EvictionOutcome = try index.writeFreeing { transaction throws(Failure) in
            if !evenUsed, try treeObserver?.isUsed(id, transaction) == true {
                return .kept(.claimed)
            }
            return try evict(id, &notices, transaction)
        }
        show(notices)
        return outcome
    }

    private func evict(
        _ id: NodeID, _ notices: inout Notices, _ transaction: borrowing Transaction
    ) throws(Failure) -> EvictionOutcome {
        guard var node = try transaction.node(id), node.kind == .file, node.content != .absent
        else { return .nothing }
        if node.isOpenForWriting || treeObserver?.isOpen(id) == true { return .kept(.open) }
        if node.pin == .pinned { return .kept(.pinned) }
        let entries = try transaction.entries(of: id)
        guard !entries.isEmpty else { return .kept(.nameless) }
        // What stays here has its content here only, whichever of its other names was sent.
        if entries.contains(where: \.isExcluded) { return .kept(.excluded) }
        guard let entry = try sentName(of: node, entries, transaction)
        else { return .kept(.unsent) }
        let freed = node.localBytes
        try noteReleased(entry, node.version, &notices, transaction)
        notices.removedContent.append((id, node.generation))
        notices.nodes.append((id, true))
        try transaction.setRanges(of: id, to: ByteRangeSet())
        node.generation = node.generation.next
        node.content = .absent
        node.localBytes = 0
        node.durability = .unknown
        try transaction.update(node)
        try transaction.record(.content, node: id, parent: entry.parent, name: entry.name)
        return .evicted(freed)
    }

    private func noteReleased(
        _ entry: Entry, _ version: ContentVersion?, _ notices: inout Notices,
        _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard provider.capabilities.contains(.release), let version,
            let identifier = entry.identifier,
            let item = try reference(to: identifier, transaction)
        else { return }
        notices.released.append((item, version))
    }

    /// The name whose item has the version that is here; nil unless every name's item was sent the content,
    /// as any of them may be the only one that is left. One that nobody was told of may be so at once.
    private func sentName(
        of node: Node, _ entries: [Entry], _ transaction: borrowing Transaction
    ) throws(Failure) -> Entry? {
        var sent: Entry?
        for entry in entries {
            guard let identifier = entry.identifier,
                let synced = try transaction.synced(identifier), synced.edits == node.edits
            else { return nil }
            if node.version == synced.item.version { sent = sent ?? entry }
        }
        return sent
    }

    func evictOrLog(_ node: NodeID) {
        do throws(Failure) {
            _ = try evict(node)
        } catch {
            logger.error("content could not be evicted", metadata: ["reason": "\(error.message)"])
        }
    }

    /// Keeps the store under its limit and the disk from filling up, least recently used first.
    /// True when there was too little room.
    func evictIfNeeded() -> Bool {
        do throws(Failure) {
            try removed.dropOld()
            let excess = try excessBytes()
            // What was removed and given up goes first: nobody has a name for it.
            var freed = excess > 0 ? try removed.drop(atLeast: excess) : 0
            if excess > freed { freed += givenUp.makeRoom(for: excess - freed) }
            if excess > freed { _ = try evictLeastRecentlyUsed(atLeast: excess - freed) }
            return excess > 0
        } catch {
            logger.error("content could not be evicted", metadata: ["reason": "\(error.message)"])
            return false
        }
    }

    /// A fetch found the disk full: drops what the provider has, least recently used first, until
    /// so much more has room, and waits until it has gone. False when there was nothing to drop.
    /// Blocks; from any thread but those serving the mount.
    func makeRoom(for byteCount: UInt64, besides id: NodeID) -> Bool {
        do throws(Failure) {
            var freed = try removed.drop(atLeast: 2 * byteCount)
            if freed < 2 * byteCount { freed += givenUp.makeRoom(for: 2 * byteCount - freed) }
            if freed < 2 * byteCount { freed += try evictLeastRecentlyUsed(atLeast: 2 * byteCount - freed, besides: id) }
            remover.flush()
            return freed > 0
        } catch {
            logger.warning(
                "no room could be made for a fetch", metadata: ["reason": "\(error.message)"])
            return false
        }
    }

    /// Returns how many bytes went. What a program has claimed stays, and does not hold up what was
    /// used after it.
    private func evictLeastRecentlyUsed(atLeast byteCount: UInt64, besides id: NodeID? = nil)
        throws(Failure) -> UInt64
    {
        try store(treeObserver?.takeRecentUses() ?? [:])
        let end = clock.uptime() + SyncEngine.checkTimeMax
        var freed: UInt64 = 0
        var last: Node?
        while freed < byteCount, clock.uptime() < end {
            let candidates = try index.read { transaction throws(Failure) in
                try transaction.evictionCandidates(limit: SyncEngine.nodesPerCheck, after: last)
            }
            guard !candidates.isEmpty else { break }
            for node in candidates where node.id != id && freed < byteCount {
                if case .evicted(let count) = try evict(node.id) { freed += count }
            }
            last = candidates.last
        }
        return freed
    }

    func storeOrLog(_ uses: [NodeID: Timestamp]) {
        do throws(Failure) {
            try store(uses)
        } catch {
            logger.warning(
                "when files were used last is not noted", metadata: ["reason": "\(error.message)"])
        }
    }

    /// In portions, so that no request on the mount waits long for the index.
    private func store(_ uses: [NodeID: Timestamp]) throws(Failure) {
        var rest = uses.makeIterator()
        var hasMore = !uses.isEmpty
        while hasMore {
            try index.write { transaction throws(Failure) in
                for _ in 0..<SyncEngine.usesPerTransaction {
                    guard let (id, time) = rest.next() else {
                        hasMore = false
                        return
                    }
                    guard var node = try transaction.node(id), node.lastUse < time else { continue }
                    node.lastUse = time
                    try transaction.update(node)
                }
            }
        }
    }

    /// How much of a file may be here at once, which is larger than the limit or the disk; nil: all of it.
    func roomForOne(of size: UInt64, present: UInt64) -> UInt64? {
        var room = cacheLimit ?? .max
        let space = content.space()
        if space.total > 0, size > space.total {
            let reserve = max(UInt64(Double(space.total) * SyncEngine.freeShareMin), SyncEngine.freeMin)
            room = min(room, present + space.free - min(space.free, reserve))
        }
        return size > room ? room : nil
    }

    /// Of content that stays whatever the limit is, and is not counted all the time.
    private func keptBytes() throws(Failure) -> UInt64 {
        let now = clock.uptime()
        if let known = kept.withLock({ $0 }), now - known.time < SyncEngine.keptAgeMax {
            return known.byteCount
        }
        let byteCount = try index.read { transaction throws(Failure) in
            try ContentQuestions.keptBytes(transaction)
        }
        kept.withLock { $0 = (now, byteCount) }
        return byteCount
    }

    private func excessBytes() throws(Failure) -> UInt64 {
        let counts = try index.read { transaction throws(Failure) in try transaction.counts() }
        let used = counts.localBytes.plus(counts.removedBytes)
        var excess: UInt64 = 0
        if let limit = cacheLimit, used > limit {
            // What never goes must not make everything else go at once.
            let kept = min(used, try keptBytes())
            let room = max(limit - min(limit, kept), limit / SyncEngine.roomShareMin)
            if used - kept > room { excess = used - kept - room + room / 10 }
        }
        let space = content.space()
        let reserve = UInt64(Double(space.total) * SyncEngine.freeShareMin)
        let missing = reserve - min(reserve, space.free)
        // Others fill the disk: what could not be fetched again on it helps nobody by going.
        if missing > 0, used >= missing / SyncEngine.helpfulShare {
            excess = max(excess, min(used, missing))
        }
        return excess
    }
}
